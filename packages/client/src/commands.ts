import { reacted } from "./message.ts";
import { lanes, type Patience, untilAnswered } from "./retry.ts";
import type { Change } from "./state.ts";
import type { Store } from "./store.ts";
import type { LiveModel, LocalMessage, Operations } from "./types.ts";

/** How many messages one call deletes. */
const BATCH = 100;

export type CommandApi = Pick<
  Operations,
  | "addReaction"
  | "removeReaction"
  | "setMessageReaction"
  | "editMessage"
  | "deleteMessages"
  | "deleteMessagesForMe"
  | "getMessage"
  | "readChat"
>;

type Commands = Pick<LiveModel, "react" | "edit" | "remove" | "markRead">;
type Shown = Change extends infer Each
  ? Each extends Change
    ? Omit<Each, "token">
    : never
  : never;

/** Changes of the caller's own: shown at once, taken back when the service refuses them. */
export function commands(store: Store, api: CommandApi, patience: Patience): Commands {
  const inOrder = lanes();
  const reading = new Map<string, number>();
  let tokens = 0;

  const chatIdOf = (messageId: string) =>
    Object.values(store.state.chats).find(({ window }) => window?.items.some(hasId(messageId)))
      ?.chat.id;

  const shownMessage = (chatId: string, id: string): LocalMessage | undefined =>
    store.get(`messages:${chatId}`).items.find(hasId(id));

  /** Changes of one message reach the service in the order in which they were made. */
  async function change(
    chatId: string,
    shown: Shown,
    lane: string,
    act: () => Promise<void>,
  ): Promise<void> {
    const token = ++tokens;
    store.dispatch({ type: "changing", chatId, change: { ...shown, token } as Change });
    try {
      await inOrder(lane, act);
    } finally {
      store.dispatch({ type: "changed", chatId, token });
    }
  }

  const call = <Result>(make: () => Promise<Result>) => untilAnswered(patience, make);

  async function react(messageId: string, emoji: string): Promise<void> {
    const target = { message_id: messageId, emoji };
    const chatId = chatIdOf(messageId);
    const message = chatId && shownMessage(chatId, messageId);
    if (!message) return void (await api.setMessageReaction(target));
    const on = reacted(message, emoji, true) !== message;
    await change(chatId, { kind: "react", id: messageId, emoji, on }, messageId, async () => {
      await call<unknown>(() => (on ? api.addReaction(target) : api.removeReaction(target)));
      const known = store.state.chats[chatId]?.window?.items.find(hasId(messageId));
      if (!known || reacted(known, emoji, on) === known) return;
      // The answer has overtaken the event, and does not say what else has changed.
      store.dispatch({ type: "message", message: await call(() => api.getMessage(target)) });
    });
  }

  async function edit(messageId: string, content: string): Promise<void> {
    const send = () => api.editMessage({ message_id: messageId, content });
    const chatId = chatIdOf(messageId);
    if (!chatId) return void (await send());
    const at = new Date().toISOString();
    await change(chatId, { kind: "edit", id: messageId, content, at }, messageId, async () => {
      store.dispatch({ type: "message", message: await call(send) });
    });
  }

  async function remove(
    chatId: string,
    messageIds: string[],
    scope: "me" | "everyone",
  ): Promise<void> {
    const method = scope === "me" ? "deleteMessagesForMe" : "deleteMessages";
    await change(chatId, { kind: "remove", ids: messageIds }, chatId, async () => {
      for (let from = 0; from < messageIds.length; from += BATCH) {
        const ids = messageIds.slice(from, from + BATCH);
        await call<unknown>(() => api[method]({ chat_id: chatId, message_ids: ids }));
        store.dispatch({ type: "messagesGone", chatId, ids });
      }
    });
  }

  function markRead(chatId: string): void {
    const chat = store.state.chats[chatId]?.chat;
    const seq = chat?.last_message?.seq ?? 0;
    if (!chat || seq <= chat.last_read_seq) return;
    store.dispatch({ type: "read", chatId, seq });
    const isWaiting = reading.has(chatId);
    reading.set(chatId, seq);
    if (isWaiting) return;
    inOrder(`read:${chatId}`, () => tellRead(chatId)).catch(() => reading.delete(chatId));
  }

  async function tellRead(chatId: string): Promise<void> {
    await call(() => {
      const seq = reading.get(chatId) ?? 0;
      reading.delete(chatId);
      return api.readChat({ chat_id: chatId, seq }).catch((error: unknown) => {
        reading.set(chatId, Math.max(seq, reading.get(chatId) ?? 0));
        throw error;
      });
    });
  }

  return { react, edit, remove, markRead };
}

const hasId =
  (id: string) =>
  (message: { id: string }): boolean =>
    message.id === id;
