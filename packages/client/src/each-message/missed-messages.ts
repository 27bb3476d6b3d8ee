import type { Message } from "@parley/protocol";
import type { Operations } from "../types.ts";
import type { Position } from "./positions.ts";

const MESSAGES_PER_PAGE = 100;

type MessagesApi = Pick<Operations, "getChatHistory">;
type MessagePage = Awaited<ReturnType<Operations["getChatHistory"]>>;

/**
 * How to find the messages after a position: by its place in the conversation, or by time if the
 * position belongs to another history or the conversation is new.
 */
export type Search = "byPlace" | "byTime";

/** The messages of a conversation after a position, oldest first. */
export async function* missedMessages(
  api: MessagesApi,
  chatId: string,
  { id, seq, at }: Position,
  search: Search,
): AsyncGenerator<Message> {
  if (search === "byTime") {
    // Imported messages have old times wherever they stand, so they do not end the search.
    yield* latest(api, chatId, ({ created_at, imported }) => imported || created_at > at);
  } else if (id === null) yield* latest(api, chatId, (message) => message.seq > seq);
  else yield* after(api, chatId, id);
}

async function* after(api: MessagesApi, chatId: string, id: string): AsyncGenerator<Message> {
  for (let last: string | undefined = id; last !== undefined; ) {
    const page: MessagePage = await api.getChatHistory({
      chat_id: chatId,
      after: last,
      limit: MESSAGES_PER_PAGE,
    });
    yield* page.items;
    last = page.has_more ? page.items.at(-1)?.id : undefined;
  }
}

/** The latest messages, back to the first that is not wanted. */
async function* latest(
  api: MessagesApi,
  chatId: string,
  isWanted: (message: Message) => boolean | undefined,
): AsyncGenerator<Message> {
  const found: Message[] = [];
  for (let before: string | undefined, hasMore = true; hasMore; before = found[0]?.id) {
    const page: MessagePage = await api.getChatHistory({
      chat_id: chatId,
      limit: MESSAGES_PER_PAGE,
      ...(before !== undefined && { before }),
    });
    const wanted = page.items.filter(isWanted);
    found.unshift(...wanted);
    hasMore = page.has_more && wanted.length === page.items.length && wanted.length > 0;
  }
  yield* found;
}
