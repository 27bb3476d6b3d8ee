import type { EventFrame } from "@parley/protocol";
import { isOutOfReach, isUnauthorized } from "./errors.ts";
import { type Patience, pause, pauseBefore, untilAnswered } from "./retry.ts";
import { type ChatState, isBehind, isDoubtful } from "./state.ts";
import type { Store } from "./store.ts";
import type { Operations } from "./types.ts";

const PAGE = 50;
const LARGE_PAGE = 100;

export type SyncApi = Pick<
  Operations,
  "getChat" | "getChats" | "getChatHistory" | "getMessage" | "getUpdates" | "getMyAgents"
>;

export interface Sync {
  /** Brings everything to the server's state after the connection was made; false if it was lost again. */
  catchUp(): Promise<boolean>;
  /** The connection was lost, or is not wanted any more. */
  halt(): void;
  /** Takes note of an event that the model has been told of. */
  heard(frame: EventFrame): void;
  openChat(chatId: string): Promise<void>;
  loadOlder(chatId: string): Promise<void>;
  loadMoreChats(): Promise<boolean>;
  refreshAgents(): Promise<void>;
  /** Forgets what was opened. */
  reset(): void;
}

/** Fetches what events did not bring. */
export function synchronizer(store: Store, api: SyncApi, patience: Patience): Sync {
  /** Changes with every connection: what began in an earlier one stops. */
  let connection = 0;
  let isLive = false;
  /** The whole is being compared; single conversations wait for that. */
  let isComparing = false;
  /** Something that no counter counts has happened while the list was on its way. */
  let isDisturbed = false;
  let nextChats: string | null = null;
  /** Conversations to be fetched whatever is known of them. */
  const wanted = new Set<string>();
  /** From where opened conversations are read again: messages hidden meanwhile have no counter either. */
  const unchecked = new Map<string, number>();
  const opened = new Set<string>();
  const healing = new Map<string, Promise<void>>();
  const filling = new Map<string, Promise<void>>();
  const opening = new Map<string, Promise<void>>();
  const loading = new Map<string, Promise<void>>();

  const chatOf = (id: string): ChatState | undefined => store.state.chats[id];
  const chatIds = () => Object.keys(store.state.chats);

  async function catchUp(): Promise<boolean> {
    const mine = ++connection;
    isLive = true;
    isComparing = true;
    for (const id of chatIds()) doubt(id);
    for (let tries = 0; mine === connection; tries++) {
      try {
        await Promise.all([dropGone().then(readList), refreshAgents()]);
        if (mine !== connection) break;
        isComparing = false;
        await healAll();
        return mine === connection;
      } catch (error) {
        if (mine !== connection || isUnauthorized(error)) break;
        await pause(pauseBefore(tries, error));
      }
    }
    return false;
  }

  /** Notes how far the conversation was known before anything of this connection was heard. */
  function doubt(id: string): void {
    const window = chatOf(id)?.window;
    if (window) unchecked.set(id, Math.min(window.seq, unchecked.get(id) ?? window.seq));
  }

  async function dropGone(): Promise<void> {
    const known = Object.fromEntries(chatIds().map((id) => [id, chatOf(id)?.chat.seq ?? 0]));
    if (Object.keys(known).length === 0) return;
    const compared = await api.getUpdates({ known });
    if (!("gone" in compared)) return;
    for (const chatId of compared.gone) store.dispatch({ type: "chatGone", chatId });
  }

  /** The list, as far as it was loaded before. Read positions have no counter, so all of it is read again. */
  async function readList(): Promise<void> {
    do {
      isDisturbed = false;
      const unseen = new Set(chatIds());
      const limit = unseen.size > PAGE ? LARGE_PAGE : PAGE;
      let cursor: string | null = null;
      do {
        const page = await readPage(cursor, limit);
        for (const { id } of page.items) unseen.delete(id);
        cursor = page.next_cursor;
      } while (cursor !== null && unseen.size > 0);
      nextChats = cursor;
      for (const id of unseen) wanted.add(id);
    } while (isDisturbed);
  }

  async function readPage(cursor: string | null, limit: number) {
    const page = await api.getChats({ limit, ...(cursor !== null && { cursor }) });
    store.dispatch({ type: "snapshots", snapshots: page.items });
    return page;
  }

  async function healAll(): Promise<void> {
    const windows = Object.values(store.state.chats).flatMap(({ window }) => window ?? []);
    // Lists do not tell who has read how far.
    for (const id of chatIds()) if (chatOf(id)?.window) wanted.add(id);
    // Chunks that were missed leave no trace in any counter.
    const streaming = windows.flatMap(({ items }) =>
      items.filter(({ finalized_at }) => finalized_at === null),
    );
    const needy = new Set([...wanted, ...chatIds().filter(isNeedy)]);
    await Promise.all([...[...needy].map(heal), ...streaming.map(({ id }) => fill(id))]);
  }

  function isNeedy(id: string): boolean {
    const chat = chatOf(id);
    if (!chat) return wanted.has(id);
    return wanted.has(id) || unchecked.has(id) || isBehind(chat) || isDoubtful(chat);
  }

  /** Fetches one conversation until nothing of it is missing. */
  function heal(id: string): Promise<void> {
    return once(healing, id, () => healOne(id, connection));
  }

  async function healOne(id: string, mine: number): Promise<void> {
    for (let tries = 0; isNeedy(id) && mine === connection; ) {
      try {
        await fetchMissing(id);
      } catch (error) {
        if (mine !== connection) return;
        if (isOutOfReach(error)) store.dispatch({ type: "chatGone", chatId: id });
        else {
          wanted.add(id);
          await pause(pauseBefore(tries++, error));
        }
      }
    }
    const chat = chatOf(id);
    // Back after having been removed from it, and still shown.
    if (chat && !chat.window && opened.has(id)) openChat(id).catch(() => {});
  }

  async function fetchMissing(id: string): Promise<void> {
    const chat = chatOf(id);
    const from = unchecked.get(id);
    if (chat?.window && (from !== undefined || isBehind(chat))) {
      const since_seq = from ?? chat.window.seq;
      const page = await api.getUpdates({ chat_id: id, since_seq, limit: LARGE_PAGE });
      if (!("messages" in page)) return;
      if (from !== undefined && page.has_more) unchecked.set(id, page.seq);
      else unchecked.delete(id);
      store.dispatch({ type: "updates", chatId: id, page });
      return;
    }
    unchecked.delete(id);
    wanted.delete(id);
    const answers = chat?.doubts ?? 0;
    const snapshot = await api.getChat({ chat_id: id });
    store.dispatch({ type: "snapshots", snapshots: [snapshot], answers });
  }

  /** Fetches a streaming message of which something is missing. */
  function fill(id: string): Promise<void> {
    return once(filling, id, async () => {
      try {
        const message = await api.getMessage({ message_id: id });
        store.dispatch({ type: "message", message });
      } catch {
        // It was deleted, or the connection lost: either way something else brings the rest.
      }
    });
  }

  function heard(frame: EventFrame): void {
    const { at } = frame;
    const isNews = at && isActivity(frame) && at.seq > (store.state.left[at.conversation_id] ?? -1);
    if (isNews && !chatOf(at.conversation_id)) want(at.conversation_id);
    if (!isUncounted(frame)) return;
    isDisturbed = true;
    // What is on its way may have been read before this: it is asked for once more.
    for (const id of healing.keys()) wanted.add(id);
  }

  function want(id: string): void {
    wanted.add(id);
    if (isLive && !isComparing) void heal(id);
  }

  store.onChange((state, before) => {
    if (!isLive || isComparing) return;
    if (state.chats !== before.chats) {
      for (const id of Object.keys(state.chats)) {
        if (state.chats[id] !== before.chats[id] && isNeedy(id)) void heal(id);
      }
    }
    if (state.early !== before.early) for (const id of Object.keys(state.early)) void fill(id);
  });

  async function openChat(chatId: string): Promise<void> {
    opened.add(chatId);
    if (chatOf(chatId)?.window) return;
    await once(opening, chatId, () => untilAnswered(patience, () => open(chatId)));
  }

  async function open(chatId: string): Promise<void> {
    if (!chatOf(chatId)) {
      const snapshot = await api.getChat({ chat_id: chatId });
      store.dispatch({ type: "snapshots", snapshots: [snapshot] });
    }
    const since = chatOf(chatId)?.chat.seq ?? 0;
    const page = await api.getChatHistory({ chat_id: chatId, limit: PAGE });
    store.dispatch({ type: "history", chatId, page, since });
    // Lists do not tell who has read how far.
    want(chatId);
  }

  async function older(chatId: string): Promise<void> {
    const window = chatOf(chatId)?.window;
    const before = window?.floor?.id;
    if (!window || before === undefined) return;
    const page = await api.getChatHistory({ chat_id: chatId, before, limit: PAGE });
    store.dispatch({ type: "history", chatId, page, since: window.seq, before });
  }

  async function refreshAgents(): Promise<void> {
    const { items } = await api.getMyAgents();
    store.dispatch({ type: "agents", agents: items });
  }

  return {
    catchUp,
    halt() {
      connection++;
      isLive = false;
      isComparing = false;
      healing.clear();
      filling.clear();
    },
    heard,
    openChat,
    loadOlder: (chatId) =>
      once(loading, chatId, () => untilAnswered(patience, () => older(chatId))),
    async loadMoreChats() {
      const cursor = nextChats;
      if (cursor === null) return false;
      const page = await untilAnswered(patience, () => readPage(cursor, PAGE));
      if (nextChats === cursor) nextChats = page.next_cursor;
      return nextChats !== null;
    },
    refreshAgents: () => untilAnswered(patience, refreshAgents),
    reset() {
      wanted.clear();
      unchecked.clear();
      opened.clear();
      nextChats = null;
    },
  };
}

/** Starts a task unless it runs already. */
function once(
  running: Map<string, Promise<void>>,
  id: string,
  task: () => Promise<void>,
): Promise<void> {
  const known = running.get(id);
  if (known) return known;
  const run = task().finally(() => {
    if (running.get(id) === run) running.delete(id);
  });
  running.set(id, run);
  return run;
}

/** What makes a conversation appear in the list. */
const isActivity = ({ method }: EventFrame): boolean =>
  method === "events.messageNew" ||
  method === "events.conversationNew" ||
  method === "events.conversationUpdated";

const isUncounted = ({ method, at }: EventFrame): boolean =>
  method === "events.chatRead" ||
  method === "events.accountUpdated" ||
  (method === "events.messageDeleted" && !at);
