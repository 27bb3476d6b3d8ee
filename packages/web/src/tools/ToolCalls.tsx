import type { LocalMessage } from "@parley/client";
import type { ToolCall } from "@parley/protocol";
import { useState } from "react";
import { useChatContext } from "../chat/context.ts";
import { useSelf } from "../lib/me.ts";
import { count } from "../lib/names.ts";
import { Icon } from "../ui/Icon.tsx";
import { Call } from "./Call.tsx";
import { isPending } from "./calls.ts";
import { useCallDetails } from "./details.ts";

/** Of more calls, only the last ones are shown at first. */
const MAX_SHOWN = 4;
const SHOWN_OF_MANY = 3;

interface ToolCallsProps {
  message: LocalMessage;
  calls: readonly ToolCall[];
}

/** Tool calls of a message, a line for each, and a card for each that waits for approval. */
export default function ToolCalls({ message, calls }: ToolCallsProps) {
  const [isOpen, setOpen] = useState(false);
  const [isExpanded, setExpanded] = useState(false);
  const details = useCallDetails(message, isExpanded || calls.some(isPending));
  const who = useWho();
  const hidden = isOpen || calls.length <= MAX_SHOWN ? 0 : calls.length - SHOWN_OF_MANY;
  return (
    <ul aria-label="Tool calls" className="my-1 flex min-w-0 flex-col gap-0.5 first:mt-0">
      {hidden > 0 && (
        <li>
          <button
            type="button"
            onClick={() => setOpen(true)}
            className="-ml-1 inline-flex min-h-7 items-center gap-2 rounded-sm px-1 text-sm text-ink-3 hover:bg-hover hover:text-ink pointer-coarse:min-h-10"
          >
            <Icon name="more" size={15} />
            {count(hidden, "earlier call")}
          </button>
        </li>
      )}
      {calls.slice(hidden).map((call) => (
        <Call
          key={call.id}
          call={call}
          message={message}
          detail={details.find(call.id)}
          fetching={details}
          who={who}
          onExpand={() => setExpanded(true)}
        />
      ))}
    </ul>
  );
}

/** The name of a person of the conversation; «you» for oneself. */
function useWho(): (username: string) => string {
  const { participants } = useChatContext().chat;
  const me = useSelf();
  return (username) => {
    if (username === me.username) return "you";
    const found = participants.find((each) => each.username === username);
    return found?.display_name ?? `@${username}`;
  };
}
