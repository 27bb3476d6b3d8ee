import { callError } from "../errors.ts";
import { loadedMessage } from "../model/state.ts";
import type { Store } from "../model/store.ts";
import type { Operations } from "../types.ts";

const MESSAGES_PER_PAGE = 50;
/**
 * A page during whose reading something changed may lack a message that was shown already, so it is
 * read again. Where people write all the time, what the last page lacks is fetched afterwards.
 */
const MAX_READS = 3;

type MessagesApi = Pick<Operations, "getChat" | "getChatHistory">;

/** Loads the latest messages of a conversation, and the conversation if it is not known. */
export async function loadLatest(store: Store, api: MessagesApi, chatId: string): Promise<void> {
  if (!store.state.chats[chatId]) {
    const snapshot = await api.getChat({ chat_id: chatId });
    store.dispatch({ type: "snapshots", snapshots: [snapshot] });
  }
  const knownSeq = () => store.state.chats[chatId]?.chat.seq ?? 0;
  for (let reads = 1; ; reads++) {
    const since = knownSeq();
    const page = await api.getChatHistory({ chat_id: chatId, limit: MESSAGES_PER_PAGE });
    if (knownSeq() > since && reads < MAX_READS) continue;
    return store.dispatch({ type: "messagePage", chatId, page, since });
  }
}

/** Loads the page before the loaded messages. */
export async function loadOlder(store: Store, api: MessagesApi, chatId: string): Promise<void> {
  const window = store.state.chats[chatId]?.window;
  const before = window?.floor?.id;
  if (!window || before === undefined) return;
  const page = await api.getChatHistory({ chat_id: chatId, before, limit: MESSAGES_PER_PAGE });
  store.dispatch({ type: "messagePage", chatId, page, since: window.seq, before });
}

/** Loads the page around a message that is not loaded. */
export async function loadAround(
  store: Store,
  api: MessagesApi,
  chatId: string,
  messageId: string,
): Promise<void> {
  const chat = store.state.chats[chatId];
  if (!chat || loadedMessage(chat, messageId)) return;
  const around = { chat_id: chatId, around: messageId, limit: MESSAGES_PER_PAGE };
  const page = await api.getChatHistory(around);
  if (!page.items.some(({ id }) => id === messageId)) {
    throw callError("not_found", "not found: message");
  }
  store.dispatch({ type: "aside", chatId, page, since: chat.chat.seq });
}

/** Loads the page next to `aside`. */
export async function extendAside(
  store: Store,
  api: MessagesApi,
  chatId: string,
  direction: "older" | "newer",
): Promise<void> {
  const aside = store.state.chats[chatId]?.aside;
  const id = (direction === "older" ? aside?.floor : aside?.ceiling)?.id;
  if (!aside || id === undefined) return;
  const next = direction === "older" ? { before: id } : { after: id };
  const page = await api.getChatHistory({ chat_id: chatId, ...next, limit: MESSAGES_PER_PAGE });
  const from = { id, direction };
  store.dispatch({ type: "aside", chatId, page, since: aside.seq, from });
}
