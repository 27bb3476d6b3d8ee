import type { TurnReceipt } from "@parley/protocol";
import { duration } from "../lib/time.ts";
import { StatusIcon } from "./CallLine.tsx";
import { callTitle } from "./calls.ts";
import { visibleText } from "./visible-text.ts";

type Round = TurnReceipt["rounds"][number];

/** The calls of the model in a turn, each with the tools that it asked for. */
export function Rounds({ rounds }: { rounds: readonly Round[] }) {
  return (
    <section aria-label="Rounds" className="border-t border-line pt-4">
      <h3 className="mb-2 text-base font-semibold">Rounds</h3>
      <ol className="flex flex-col gap-3">
        {rounds.map((round, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: rounds are only added at the end
          <li key={index} className="flex flex-col gap-1.5">
            <p className="flex flex-wrap items-baseline gap-x-3 text-base">
              <span className="flex-1 text-ink-3">Model, round {index + 1}</span>
              <span className="text-sm text-ink-2 tabular-nums">{tokensOf(round)}</span>
              <span className="min-w-14 text-right tabular-nums">
                {duration(round.duration_ms)}
              </span>
            </p>
            {round.calls.map((call) => (
              <p key={call.id} className="flex items-start gap-2 text-base">
                <span className="mt-1">
                  <StatusIcon status={call.status} />
                </span>
                <span className="min-w-0 flex-1 break-words">
                  {callTitle(call)}{" "}
                  <span className="text-sm text-ink-3">
                    {visibleText(call.server)}, {call.status}
                  </span>
                </span>
                <span className="min-w-14 text-right tabular-nums">
                  {duration(call.duration_ms)}
                </span>
              </p>
            ))}
          </li>
        ))}
      </ol>
    </section>
  );
}

const tokensOf = ({ usage }: Round) =>
  usage
    ? `${usage.input_tokens.toLocaleString()} in, ${usage.output_tokens.toLocaleString()} out`
    : "";
