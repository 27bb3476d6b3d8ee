import { useChat, useClient } from "@parley/client/react";
import type { PendingQuestion } from "@parley/protocol";
import { plainText } from "@parley/protocol/markup";
import { useEffect, useState } from "react";
import { useSelf } from "../lib/me.ts";
import { chatTitle, nameOf } from "../lib/names.ts";
import { chatPath } from "../lib/router.ts";
import { Icon } from "../ui/Icon.tsx";
import { Link } from "../ui/Link.tsx";
import { askedWords } from "./questions.ts";
import { WaitingUntil } from "./WaitingUntil.tsx";

/** A question of a tool in the list of what waits: what it asks, in which conversation, and until when. */
export function WaitingQuestion({ question }: { question: PendingQuestion }) {
  const { message_id, conversation_id, agent, expires_at } = question;
  const me = useSelf();
  const chat = useChat(conversation_id);
  return (
    <Link
      to={chatPath(conversation_id, message_id)}
      className="flex items-center gap-3 rounded-lg border border-line bg-surface p-4 text-md shadow-low hover:bg-hover"
    >
      <span className="text-warn">
        <Icon name="clock" size={17} />
      </span>
      <span className="min-w-0 flex-1 break-words">
        {/* It has its place before it arrives, so that the list does not move under a finger. */}
        <span className="line-clamp-2 min-h-[1lh] font-medium">{useWords(message_id)}</span>
        <span className="block text-sm text-ink-3">
          A tool of {nameOf(agent)} asks{chat && ` in ${chatTitle(chat, me)}`} ·{" "}
          <WaitingUntil at={expires_at} />
        </span>
      </span>
      <Icon name="next" size={17} />
    </Link>
  );
}

/** The words of a tool that asks; empty until they are fetched, and if they cannot be. */
function useWords(messageId: string): string {
  const client = useClient();
  const [words, setWords] = useState("");
  useEffect(() => {
    let isCurrent = true;
    client.getMessage({ message_id: messageId }).then(
      ({ content }) => isCurrent && setWords(plainText(askedWords(content))),
      // It can be answered without them.
      () => {},
    );
    return () => {
      isCurrent = false;
    };
  }, [client, messageId]);
  return words;
}
