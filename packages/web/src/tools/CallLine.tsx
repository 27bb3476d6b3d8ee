import type { ToolCall, ToolCallDetail } from "@parley/protocol";
import { useId, useState } from "react";
import type { Fetching } from "../lib/fetched.ts";
import { Icon, type IconName } from "../ui/Icon.tsx";
import { CallDetails } from "./CallDetails.tsx";
import { callTitle } from "./calls.ts";
import { usePending } from "./pending.ts";
import { visibleText } from "./visible-text.ts";
import { WaitingUntil } from "./WaitingUntil.tsx";

interface CallLineProps {
  call: ToolCall;
  detail: ToolCallDetail | undefined;
  fetching: Fetching;
  who: (username: string) => string;
  /** The person decided after somebody else had. */
  isLate: boolean;
  onExpand: () => void;
}

/** A tool call in a quiet line that opens to its arguments and its result. */
export function CallLine({ call, detail, fetching, who, isLate, onExpand }: CallLineProps) {
  const [isOpen, setOpen] = useState(false);
  const id = useId();
  const outcome = outcomeOf(call, who);
  const asked = usePending().questions.find(({ call_id }) => call_id === call.id);
  return (
    <>
      <button
        type="button"
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        onClick={() => {
          onExpand();
          setOpen(!isOpen);
        }}
        className="group/line -ml-1 flex min-h-7 max-w-full items-center gap-2 rounded-sm px-1 text-left text-sm text-ink-3 transition-colors hover:bg-hover hover:text-ink-2 pointer-coarse:min-h-10"
      >
        <StatusIcon status={asked ? "pending" : call.status} />
        <span className="min-w-0 break-words">
          <span className="font-medium text-ink-2">{callTitle(call)}</span> ·{" "}
          {visibleText(call.server)}
          {asked ? (
            <span className="text-warn">
              {" · "}
              <WaitingUntil at={asked.expires_at} />
            </span>
          ) : outcome ? (
            ` · ${outcome}`
          ) : (
            <span className="sr-only"> · {call.status}</span>
          )}
        </span>
        <span className={`transition-transform ${isOpen ? "rotate-90" : ""}`}>
          <Icon name="next" size={14} />
        </span>
      </button>
      <p role="status" className="pl-6 text-sm text-warn empty:hidden">
        {isLate && "This was decided already, so nothing was changed."}
      </p>
      {isOpen && (
        <div id={id} className="my-1 max-w-2xl animate-fade pl-6">
          <CallDetails call={call} detail={detail} fetching={fetching} />
        </div>
      )}
    </>
  );
}

/** What became of a call, for people; empty if nobody had to decide and it worked. */
function outcomeOf({ status, decided_by }: ToolCall, who: (username: string) => string): string {
  if (status === "expired") return "expired, nobody decided in time";
  if (decided_by === null) return status === "done" ? "" : status;
  const by = who(decided_by);
  return status === "rejected" ? `Rejected by ${by}` : `Approved by ${by} · ${status}`;
}

const icons: Record<Exclude<ToolCall["status"], "running">, { name: IconName; colour: string }> = {
  pending: { name: "clock", colour: "text-warn" },
  done: { name: "check", colour: "text-good" },
  failed: { name: "alert", colour: "text-danger" },
  rejected: { name: "block", colour: "text-ink-3" },
  expired: { name: "clock", colour: "text-ink-3" },
};

/** Words beside it say the same. */
export function StatusIcon({ status }: Pick<ToolCall, "status">) {
  if (status === "running") {
    return (
      <span className="inline-flex size-[15px] shrink-0 items-center justify-center">
        <span className="size-2 animate-breathe rounded-full bg-accent" />
      </span>
    );
  }
  const { name, colour } = icons[status];
  return (
    <span className={colour}>
      <Icon name={name} size={15} />
    </span>
  );
}
