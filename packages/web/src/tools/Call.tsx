import type { LocalMessage } from "@parley/client";
import type { ToolCall, ToolCallDetail } from "@parley/protocol";
import { useLayoutEffect, useRef } from "react";
import type { Fetching } from "../lib/fetched.ts";
import { ownerOf } from "../lib/names.ts";
import { Approval } from "./Approval.tsx";
import { CallLine } from "./CallLine.tsx";
import { useDecision } from "./decision.ts";

interface CallProps {
  call: ToolCall;
  message: LocalMessage;
  /** Undefined until it is fetched. */
  detail: ToolCallDetail | undefined;
  fetching: Fetching;
  who: (username: string) => string;
  onExpand: () => void;
}

/** A tool call: a card while it waits for approval, then a line with its outcome. */
export function Call({ call, message, detail, fetching, who, onExpand }: CallProps) {
  const decision = useDecision(call.id, message.id);
  const shown = call.status === "pending" ? (decision.decided ?? call) : call;
  const isWaiting = shown.status === "pending";
  const item = useRef<HTMLLIElement>(null);
  const hadFocus = useRef(false);
  // The pressed button disappears, so the line that replaces it gets the focus.
  useLayoutEffect(() => {
    if (isWaiting || !hadFocus.current || document.activeElement !== document.body) return;
    item.current?.querySelector("button")?.focus({ preventScroll: true });
  }, [isWaiting]);
  return (
    <li
      ref={item}
      onFocus={() => {
        hadFocus.current = true;
      }}
      onBlur={({ relatedTarget }) => {
        if (relatedTarget) hadFocus.current = false;
      }}
      className="min-w-0"
    >
      {isWaiting ? (
        <Approval
          agent={message.sender}
          owner={who(ownerOf(message.sender.username))}
          call={call}
          detail={detail}
          fetching={fetching}
          decision={decision}
        />
      ) : (
        <CallLine
          call={shown}
          detail={detail}
          fetching={fetching}
          who={who}
          isLate={decision.isLate}
          onExpand={onExpand}
        />
      )}
    </li>
  );
}
