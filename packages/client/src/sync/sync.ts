import type { EventFrame } from "@parley/protocol";
import { pause, pauseBefore, untilAnswered } from "../async/retry.ts";
import { once } from "../async/single-flight.ts";
import type { Connectivity } from "../connection/connectivity.ts";
import { callError, isUnauthorized } from "../errors.ts";
import { isOwnBehind, loadedMessage } from "../model/state.ts";
import type { Store } from "../model/store.ts";
import type { LiveModel, Operations } from "../types.ts";
import { healer, isOtherHistory } from "./resync.ts";

const PAGE = 50;
const LARGE_PAGE = 100;

export type SyncApi = Pick<
  Operations,
  "getChat" | "getChats" | "getChatHistory" | "getMessage" | "getUpdates" | "getMyAgents"
>;

type Loading =
  | "openChat"
  | "loadOlder"
  | "showAround"
  | "loadAside"
  | "closeAside"
  | "loadMoreChats"
  | "refreshAgents";

export interface Sync extends Pick<LiveModel, Loading> {
  /** Takes note of the history that the server has. */
  inHistory(historyId: string): void;
  /** Brings everything to the server's state after the connection was made; false if it was lost again. */
  catchUp(): Promise<boolean>;
  /** The connection was lost, or is not wanted any more. */
  halt(): void;
  /** Takes note of an event that the model has been told of. */
  heard(frame: EventFrame): void;
  /** Forgets what was opened. */
  reset(): void;
}

/** Fetches what events do not bring: all of it after an absence, and more of it on request. */
export function synchronizer(store: Store, api: SyncApi, patience: Connectivity): Sync {
  /** Changes with every connection: what began in an earlier one stops. */
  let connection = 0;
  let nextChats: string | null = null;
  const opened = new Set<string>();
  const opening = new Map<string, Promise<void>>();
  const loading = new Map<string, Promise<void>>();
  const healing = healer(store, api, {
    onHealed(id) {
      const chat = store.state.chats[id];
      // Back after the caller was removed from it or the copy was dropped, and still shown.
      if (chat && !chat.window && opened.has(id)) openChat(id).catch(() => {});
    },
    onOtherHistory: startOver,
  });

  const chatIds = () => Object.keys(store.state.chats);

  async function catchUp(): Promise<boolean> {
    const mine = ++connection;
    healing.start();
    for (let tries = 0; mine === connection; tries++) {
      try {
        await Promise.all([compare(knownSeqs()).then(readList), refreshAgents()]);
        if (mine !== connection) break;
        await healing.resume();
        return mine === connection;
      } catch (error) {
        if (mine !== connection || isUnauthorized(error)) break;
        await pause(pauseBefore(tries, error));
      }
    }
    return false;
  }

  function inHistory(historyId: string): void {
    const { historyId: before } = store.state;
    store.dispatch({ type: "historyId", historyId });
    if (before !== null && before !== historyId) forget();
  }

  /** Nothing that was fetched counts any more. */
  function startOver(): void {
    store.dispatch({ type: "copyDropped" });
    forget();
    patience.reconnect();
  }

  function forget(): void {
    nextChats = null;
    healing.reset();
    for (const id of opened) healing.want(id);
  }

  /** Which of the known conversations are gone; new names, and what was hidden, since the last time. */
  async function compare(known?: Record<string, number>): Promise<void> {
    const { accountsSeq: accounts_since, own } = store.state;
    const own_since = own.seq;
    const page = await api.getUpdates({
      ...(known && { known }),
      ...(accounts_since !== null && { accounts_since }),
      ...(own_since !== null && { own_since }),
    });
    if (!("gone" in page)) return;
    // Servers of an earlier version say nothing of either.
    if (page.behind?.length || isOtherHistory(store.state, page)) return startOver();
    for (const chatId of page.gone) store.dispatch({ type: "chatGone", chatId });
    store.dispatch({ type: "overview", page });
    if (page.has_more) await compare();
  }

  const knownSeqs = () =>
    Object.fromEntries(Object.entries(store.state.chats).map(([id, { chat }]) => [id, chat.seq]));

  /** Something was hidden on another device, and its event did not come. */
  store.onChange((state, before) => {
    if (state.own === before.own || !isOwnBehind(state) || !patience.isConnected()) return;
    // After a failure the next connection asks again.
    void once(loading, "own", () => compare()).catch(() => {});
  });

  /** The list, as far as it was loaded: the caller may have read on another device. */
  async function readList(): Promise<void> {
    const unseen = new Set(chatIds());
    const limit = unseen.size > PAGE ? LARGE_PAGE : PAGE;
    let pages = Math.ceil(unseen.size / limit) + 1;
    let cursor: string | null = null;
    do {
      const page = await readPage(cursor, limit);
      for (const { id } of page.items) unseen.delete(id);
      cursor = page.next_cursor;
    } while (cursor !== null && unseen.size > 0 && --pages > 0);
    nextChats = cursor;
    // Some were opened from further down.
    for (const id of unseen) healing.want(id);
  }

  async function readPage(cursor: string | null, limit: number) {
    const known = store.state.chats;
    const page = await api.getChats({ limit, ...(cursor !== null && { cursor }) });
    if (page.items.some((item) => item.seq < (known[item.id]?.chat.seq ?? 0))) startOver();
    store.dispatch({ type: "snapshots", snapshots: page.items });
    return page;
  }

  async function openChat(chatId: string): Promise<void> {
    opened.add(chatId);
    if (store.state.chats[chatId]?.window) return;
    await once(opening, chatId, () => untilAnswered(patience, () => open(chatId)));
  }

  async function open(chatId: string): Promise<void> {
    if (!store.state.chats[chatId]) {
      const snapshot = await api.getChat({ chat_id: chatId });
      store.dispatch({ type: "snapshots", snapshots: [snapshot] });
    }
    const since = store.state.chats[chatId]?.chat.seq ?? 0;
    const page = await api.getChatHistory({ chat_id: chatId, limit: PAGE });
    store.dispatch({ type: "history", chatId, page, since });
    // Lists do not tell who has read how far.
    healing.want(chatId);
  }

  async function older(chatId: string): Promise<void> {
    const window = store.state.chats[chatId]?.window;
    const before = window?.floor?.id;
    if (!window || before === undefined) return;
    const page = await api.getChatHistory({ chat_id: chatId, before, limit: PAGE });
    store.dispatch({ type: "history", chatId, page, since: window.seq, before });
  }

  async function around(chatId: string, id: string): Promise<void> {
    const chat = store.state.chats[chatId];
    if (!chat || loadedMessage(chat, id)) return;
    const page = await api.getChatHistory({ chat_id: chatId, around: id, limit: PAGE });
    if (!page.items.some((message) => message.id === id)) {
      throw callError("not_found", "not found: message");
    }
    store.dispatch({ type: "aside", chatId, page, since: chat.chat.seq });
  }

  async function further(chatId: string, direction: "older" | "newer"): Promise<void> {
    const aside = store.state.chats[chatId]?.aside;
    const id = (direction === "older" ? aside?.floor : aside?.ceiling)?.id;
    if (!aside || id === undefined) return;
    const next = direction === "older" ? { before: id } : { after: id };
    const page = await api.getChatHistory({ chat_id: chatId, ...next, limit: PAGE });
    const from = { id, direction };
    store.dispatch({ type: "aside", chatId, page, since: aside.seq, from });
  }

  async function refreshAgents(): Promise<void> {
    const { items } = await api.getMyAgents();
    store.dispatch({ type: "agents", agents: items });
  }

  return {
    inHistory,
    catchUp,
    halt() {
      connection++;
      healing.halt();
    },
    heard(frame) {
      healing.heard(frame);
    },
    openChat,
    loadOlder: (chatId) =>
      once(loading, chatId, () => untilAnswered(patience, () => older(chatId))),
    async showAround(chatId, messageId) {
      await openChat(chatId);
      await untilAnswered(patience, () => around(chatId, messageId));
    },
    loadAside: (chatId, direction) =>
      once(loading, `${chatId} ${direction}`, () =>
        untilAnswered(patience, () => further(chatId, direction)),
      ),
    closeAside: (chatId) => store.dispatch({ type: "asideClosed", chatId }),
    async loadMoreChats() {
      const cursor = nextChats;
      if (cursor === null) return false;
      const page = await untilAnswered(patience, () => readPage(cursor, PAGE));
      if (nextChats === cursor) nextChats = page.next_cursor;
      return nextChats !== null;
    },
    refreshAgents: () => untilAnswered(patience, refreshAgents),
    reset() {
      opened.clear();
      forget();
    },
  };
}
