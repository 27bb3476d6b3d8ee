import { useChat, useClient } from "@parley/client/react";
import type { PendingQuestion } from "@parley/protocol";
import { useEffect, useState } from "react";
import { messageLine } from "../files/describe.ts";
import { useSelf } from "../lib/me.ts";
import { chatTitle, nameOf } from "../lib/names.ts";
import { chatPath } from "../lib/router.ts";
import { clockTime, fullTime } from "../lib/time.ts";
import { Icon } from "../ui/Icon.tsx";
import { Link } from "../ui/Link.tsx";

/** A question of a tool in the list of what waits: what it asks, in which conversation, and until when. */
export function WaitingQuestion({ question }: { question: PendingQuestion }) {
  const { message_id, conversation_id, agent, expires_at } = question;
  const me = useSelf();
  const chat = useChat(conversation_id);
  const text = useText(message_id);
  return (
    <Link
      to={chatPath(conversation_id, message_id)}
      className="flex items-center gap-3 rounded-lg border border-line bg-surface p-4 text-md shadow-low hover:bg-hover"
    >
      <span className="text-warn">
        <Icon name="tool" size={17} />
      </span>
      <span className="min-w-0 flex-1 break-words">
        A tool of {nameOf(agent)} asks you something
        {/* It has its place before it arrives, so that the list does not move under a finger. */}
        <span className="line-clamp-2 min-h-[1lh] text-base text-ink-2">{text}</span>
        <span className="block text-sm text-ink-3">
          {chat && `${chatTitle(chat, me)} · `}waiting for you until{" "}
          <time dateTime={expires_at} title={fullTime(expires_at)}>
            {clockTime(expires_at)}
          </time>
        </span>
      </span>
      <Icon name="next" size={17} />
    </Link>
  );
}

/** The words of a message; empty until it is fetched, and if it cannot be. */
function useText(messageId: string): string {
  const client = useClient();
  const [text, setText] = useState("");
  useEffect(() => {
    let isCurrent = true;
    client.getMessage({ message_id: messageId }).then(
      (message) => isCurrent && setText(messageLine(message, 200)),
      // It can be answered without them.
      () => {},
    );
    return () => {
      isCurrent = false;
    };
  }, [client, messageId]);
  return text;
}
