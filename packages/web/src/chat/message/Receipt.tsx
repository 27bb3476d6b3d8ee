import { useClient } from "@parley/client/react";
import type { TurnReceipt } from "@parley/protocol";
import { useCallback, useEffect } from "react";
import { useFetched } from "../../lib/fetched.ts";
import { count } from "../../lib/names.ts";
import { duration, fullTime } from "../../lib/time.ts";
import { Rounds } from "../../tools/Rounds.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { Unfetched } from "../../ui/Unfetched.tsx";

/** The receipt of a turn: model, duration and tokens, and the same of each round with its tool calls. */
export default function Receipt({
  messageId,
  onClose,
}: {
  messageId: string;
  onClose: () => void;
}) {
  const client = useClient();
  const fetched = useFetched(
    useCallback(() => client.getTurn({ message_id: messageId }), [client, messageId]),
  );
  const { value: receipt, fetchAgain } = fetched;
  useEffect(
    () =>
      client.on("events.messageComplete", ({ params }) => {
        if (params.id === messageId) fetchAgain();
      }),
    [client, messageId, fetchAgain],
  );
  return (
    <Dialog title="Receipt" onClose={onClose}>
      <div className="flex min-h-0 flex-col gap-5 overflow-y-auto px-5 pb-5">
        {!receipt && <Unfetched fetched={fetched} className="h-48" />}
        {receipt && (
          <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-2 text-base">
            {linesOf(receipt).map(([name, value]) => (
              <div key={name} className="contents">
                <dt className="text-ink-3">{name}</dt>
                <dd className="min-w-0 text-right break-words tabular-nums">{value}</dd>
              </div>
            ))}
          </dl>
        )}
        {receipt && receipt.rounds.length > 1 && <Rounds rounds={receipt.rounds} />}
      </div>
    </Dialog>
  );
}

function linesOf(receipt: TurnReceipt): [string, string][] {
  const { agent, model, status, error, context_ids, tries, usage } = receipt;
  return [
    ["Agent", `${agent.display_name} (@${agent.username})`],
    ["Model", model],
    ["Status", error ? `${status}: ${error.message}` : status],
    ["Started", fullTime(receipt.started_at)],
    ["First word after", duration(receipt.first_token_ms)],
    ["Took", duration(receipt.duration_ms)],
    ["Read", count(context_ids.length, "message")],
    ["Tries", String(tries)],
    ["Tokens in", usage?.input_tokens.toLocaleString() ?? "–"],
    ["Tokens out", usage?.output_tokens.toLocaleString() ?? "–"],
  ];
}
