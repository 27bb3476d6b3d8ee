import { useClient } from "@parley/client/react";
import type { Message } from "@parley/protocol";
import { useEffect, useState } from "react";
import { messageLine } from "../files/describe.ts";
import { BLOCKED_MESSAGE, useIsBlocked } from "../lib/blocked.ts";
import { useChatContext } from "./context.ts";
import { loadedMessage } from "./loaded-message.ts";
import { useSenderName } from "./sender-names.ts";

/** The message that is replied to, in a line. Jumps to it. */
export function ReplyQuote({ id }: { id: string }) {
  const { chat, onJump } = useChatContext();
  const client = useClient();
  const speaker = useSenderName();
  const isBlocked = useIsBlocked();
  const [quoted, setQuoted] = useState<Message | null | undefined>(() =>
    loadedMessage(client.model, chat.id, id),
  );
  useEffect(() => {
    if (quoted !== undefined) return;
    client.getMessage({ message_id: id }).then(setQuoted, () => setQuoted(null));
  }, [client, id, quoted]);
  if (!quoted) {
    return (
      <p className="mb-1.5 border-l-2 border-line pl-2.5 text-sm text-ink-3">
        {quoted === null ? "The message was deleted." : "…"}
      </p>
    );
  }
  const isFolded = chat.kind === "group" && isBlocked(quoted.sender);
  return (
    <button
      type="button"
      onClick={() => onJump(id)}
      className="mb-1.5 block w-full min-w-0 border-l-2 border-edge pl-2.5 text-left text-sm text-ink-2 hover:text-ink"
    >
      {isFolded ? (
        BLOCKED_MESSAGE
      ) : (
        <>
          <span className="block font-medium break-words">{speaker(quoted.sender)}</span>
          <span dir="auto" className="block truncate text-left">
            {messageLine(quoted, 120)}
          </span>
        </>
      )}
    </button>
  );
}
