import type { Client } from "@parley/client";
import { useClient, useStatus } from "@parley/client/react";
import type { Message } from "@parley/protocol";
import { useEffect, useState } from "react";
import { messageLine } from "../../files/describe.ts";
import { BLOCKED_MESSAGE, useIsBlocked } from "../../lib/blocked.ts";
import { codeOf } from "../../lib/errors.ts";
import { useChatContext } from "../context.ts";
import { useLoadedMessage } from "../loaded-message.ts";
import { useSenderName } from "../sender-names.ts";

/** The message that is replied to, in a line. Jumps to it. */
export function ReplyQuote({ id }: { id: string }) {
  const { chat } = useChatContext();
  const loaded = useLoadedMessage(chat.id, id);
  return loaded ? <Quote message={loaded} /> : <FetchedQuote id={id} />;
}

/** The quote of a message that is not loaded, or no longer. */
function FetchedQuote({ id }: { id: string }) {
  const message = useFetchedMessage(id);
  if (message) return <Quote message={message} />;
  return (
    <p className="mb-1.5 border-l-2 border-line pl-2.5 text-sm text-ink-3">
      {message === null ? "The message was deleted." : "…"}
    </p>
  );
}

function Quote({ message }: { message: Message }) {
  const { chat, onJump } = useChatContext();
  const speaker = useSenderName();
  const isBlocked = useIsBlocked();
  const isFolded = chat.kind === "group" && isBlocked(message.sender);
  return (
    <button
      type="button"
      onClick={() => onJump(message.id)}
      className="mb-1.5 block w-full min-w-0 border-l-2 border-edge pl-2.5 text-left text-sm text-ink-2 hover:text-ink"
    >
      {isFolded ? (
        BLOCKED_MESSAGE
      ) : (
        <>
          <span className="block font-medium break-words">{speaker(message.sender)}</span>
          <span dir="auto" className="block truncate text-left">
            {messageLine(message, 120)}
          </span>
        </>
      )}
    </button>
  );
}

/** A message, fetched after each connection and each change of it. Null if it is deleted or hidden. */
function useFetchedMessage(id: string): Message | null | undefined {
  const client = useClient();
  const isOnline = useStatus() === "online";
  const [message, setMessage] = useState<Message | null>();
  useEffect(() => {
    if (!isOnline) return;
    let requests = 0;
    const fetchMessage = () => {
      const request = ++requests;
      client.getMessage({ message_id: id }).then(
        (found) => request === requests && setMessage(found),
        (error: unknown) => request === requests && isOutOfReach(error) && setMessage(null),
      );
    };
    fetchMessage();
    const unwatch = watchMessage(client, id, fetchMessage);
    return () => {
      requests++;
      unwatch();
    };
  }, [client, id, isOnline]);
  return message;
}

const isOutOfReach = (error: unknown) => ["not_found", "forbidden"].includes(codeOf(error));

function watchMessage(client: Client, id: string, onChange: () => void): () => void {
  const checkMessage = ({ params }: { params: Message }) => {
    if (params.id === id) onChange();
  };
  const unsubscribes = [
    client.on("events.messageEdited", checkMessage),
    client.on("events.messageComplete", checkMessage),
    client.on("events.messageDeleted", ({ params }) => {
      if (params.ids.includes(id)) onChange();
    }),
  ];
  return () => {
    for (const unsubscribe of unsubscribes) unsubscribe();
  };
}
