import type { ComponentAction } from "@parley/protocol";
import { useSelf } from "../../lib/me.ts";
import { Avatar } from "../../ui/Avatar.tsx";
import { useChatContext } from "../context.ts";
import { useSenderName } from "../sender-names.ts";

interface ActionNoteProps {
  action: ComponentAction;
  /** The message whose component was used. */
  messageId: string | null;
}

/** Above the reply to a button or form: who pressed what. Jumps to the message of the component. */
export function ActionNote({ action, messageId }: ActionNoteProps) {
  const { onJump } = useChatContext();
  const me = useSelf();
  const speaker = useSenderName();
  const { by, label, token } = action;
  const who = by.username === me.username ? "You" : speaker(by);
  return (
    <button
      type="button"
      disabled={messageId === null}
      onClick={() => messageId !== null && onJump(messageId)}
      className="mb-1.5 -ml-1 flex min-h-7 max-w-full items-center gap-2 rounded-md px-1 text-left text-sm text-ink-2 enabled:hover:bg-hover"
    >
      <Avatar account={by} size={20} />
      <span className="min-w-0 break-words">
        <span className="font-medium text-ink">{who}</span> {describeAction(token, label)}
      </span>
    </button>
  );
}

function describeAction(token: string, label: string | null): string {
  if (label !== null) return `pressed «${label}»`;
  return token.startsWith("form_submit:") ? "submitted the form" : "used a component";
}
