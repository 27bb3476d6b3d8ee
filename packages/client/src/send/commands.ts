import { lanes, untilAnswered } from "../async/retry.ts";
import { once } from "../async/single-flight.ts";
import type { Reachability } from "../connection/connectivity.ts";
import { isTransient } from "../errors.ts";
import { reacted } from "../model/message.ts";
import { type Change, loadedMessage } from "../model/state.ts";
import type { Store } from "../model/store.ts";
import type { LiveModel, LocalMessage, Operations } from "../types.ts";

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

interface Commands extends Pick<LiveModel, "react" | "edit" | "remove" | "markRead"> {
  /** Tells the service what was read and could not be told. */
  tellRead(): void;
}

type Shown = Change extends infer Each
  ? Each extends Change
    ? Omit<Each, "token">
    : never
  : never;

/** Changes of the caller's own: shown at once, taken back when the service refuses them. */
export function commands(store: Store, api: CommandApi, reachability: Reachability): Commands {
  const inOrder = lanes();
  const telling = new Map<string, Promise<void>>();
  let tokens = 0;

  const chatIdOf = (messageId: string) =>
    Object.values(store.state.chats).find((each) => loadedMessage(each, messageId))?.chat.id;

  const shownMessage = (chatId: string, id: string): LocalMessage | undefined =>
    store.get(`messages:${chatId}`).items.findLast(hasId(id)) ??
    store.get(`aside:${chatId}`)?.items.find(hasId(id));

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

  const call = <Result>(make: () => Promise<Result>) => untilAnswered(reachability, make);

  async function react(messageId: string, emoji: string): Promise<void> {
    const target = { message_id: messageId, emoji };
    const chatId = chatIdOf(messageId);
    const message = chatId && shownMessage(chatId, messageId);
    if (!message) return void (await api.setMessageReaction(target));
    const on = reacted(message, emoji, true) !== message;
    await change(chatId, { kind: "react", id: messageId, emoji, on }, messageId, async () => {
      await call<unknown>(() => (on ? api.addReaction(target) : api.removeReaction(target)));
      const chat = store.state.chats[chatId];
      const known = chat && loadedMessage(chat, messageId);
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
    tellRead();
  }

  function tellRead(): void {
    for (const chatId of Object.keys(store.state.reading)) {
      void once(telling, chatId, () => tellReadOf(chatId));
    }
  }

  async function tellReadOf(chatId: string): Promise<void> {
    for (let seq = read(chatId); seq !== undefined; seq = read(chatId)) {
      try {
        // Each try tells how far it is by then.
        await call(() => {
          seq = read(chatId) ?? seq ?? 0;
          return api.readChat({ chat_id: chatId, seq });
        });
      } catch (error) {
        // It is told with the next connection, or by the next start.
        if (isTransient(error)) return;
      }
      store.dispatch({ type: "readTold", chatId, seq });
    }
  }

  const read = (chatId: string): number | undefined => store.state.reading[chatId];

  return { react, edit, remove, markRead, tellRead };
}

const hasId =
  (id: string) =>
  (message: { id: string }): boolean =>
    message.id === id;
