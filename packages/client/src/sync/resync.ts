import type { EventFrame } from "@parley/protocol";
import { pause, pauseBefore } from "../async/retry.ts";
import { once } from "../async/single-flight.ts";
import { isOutOfReach } from "../errors.ts";
import { type ChatState, isBehind, isDoubtful, loadedSeq, type State } from "../model/state.ts";
import type { Store } from "../model/store.ts";
import type { Operations } from "../types.ts";

/** So many changes are asked for at a time. */
const PAGE = 100;
/** Whatever lacks more changes than that is loaded anew. */
const FAR = 1000;

export interface Healer {
  /** A connection was made: nothing is fetched until `resume`. */
  start(): void;
  /** Fetches all that is missing, and from now on whatever turns out to be. */
  resume(): Promise<void>;
  /** The connection was lost. */
  halt(): void;
  /** Fetches a conversation, whatever is known of it. */
  want(id: string): void;
  /** Takes note of an event that the model has been told of. */
  heard(frame: EventFrame): void;
  /** Forgets what it was about. */
  reset(): void;
}

export interface HealerEvents {
  onHealed(id: string): void;
  /** The server's history is another one than that of what was fetched. */
  onOtherHistory(): void;
}

/**
 * Brings single conversations to the server's state. A conversation is in need of it when its
 * counter is behind what was heard, when events did not tell enough, or when it is not known.
 */
export function healer(
  store: Store,
  api: Pick<Operations, "getChat" | "getMessage" | "getUpdates">,
  { onHealed, onOtherHistory }: HealerEvents,
): Healer {
  /** Changes with every connection: what began in an earlier one stops. */
  let connection = 0;
  let isActive = false;
  const wanted = new Set<string>();
  const healing = new Map<string, Promise<void>>();
  const filling = new Map<string, Promise<void>>();

  const chatOf = (id: string): ChatState | undefined => store.state.chats[id];

  function isNeedy(id: string): boolean {
    const chat = chatOf(id);
    if (!chat) return wanted.has(id);
    return wanted.has(id) || isBehind(chat) || isDoubtful(chat);
  }

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
    if (mine === connection) onHealed(id);
  }

  async function fetchMissing(id: string): Promise<void> {
    const chat = chatOf(id);
    const known = chat ? loadedSeq(chat) : null;
    if (chat && known !== null && isBehind(chat)) {
      if (chat.heard - known <= FAR) return fetchUpdates(id, known);
      store.dispatch({ type: "unloaded", chatId: id });
    }
    wanted.delete(id);
    const answers = chat?.doubts ?? 0;
    const snapshot = await api.getChat({ chat_id: id });
    if (snapshot.seq < (chat?.chat.seq ?? 0)) return onOtherHistory();
    store.dispatch({ type: "snapshots", snapshots: [snapshot], answers });
  }

  async function fetchUpdates(id: string, since_seq: number): Promise<void> {
    const page = await api.getUpdates({ chat_id: id, since_seq, limit: PAGE });
    if (!("messages" in page)) return;
    if (page.conversation.seq < since_seq || isOtherHistory(store.state, page)) {
      return onOtherHistory();
    }
    store.dispatch({ type: "updates", chatId: id, page, since: since_seq });
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

  function want(id: string): void {
    wanted.add(id);
    if (isActive) void heal(id);
  }

  store.onChange((state, before) => {
    if (!isActive) return;
    if (state.chats !== before.chats) {
      for (const id of Object.keys(state.chats)) {
        if (state.chats[id] !== before.chats[id] && isNeedy(id)) void heal(id);
      }
    }
    if (state.early !== before.early) for (const id of Object.keys(state.early)) void fill(id);
  });

  return {
    start() {
      connection++;
      isActive = false;
    },
    async resume() {
      isActive = true;
      const chats = Object.entries(store.state.chats);
      // Lists do not tell who has read how far, and no counter tells of chunks that were missed.
      for (const [id, { window }] of chats) if (window) wanted.add(id);
      const messages = chats.flatMap(([, { window, aside }]) => [
        ...(window?.items ?? []),
        ...(aside?.items ?? []),
      ]);
      const streaming = messages.filter(({ finalized_at }) => finalized_at === null);
      const needy = new Set([...wanted, ...chats.map(([id]) => id).filter(isNeedy)]);
      await Promise.all([...[...needy].map(heal), ...streaming.map(({ id }) => fill(id))]);
    },
    halt() {
      connection++;
      isActive = false;
      healing.clear();
      filling.clear();
    },
    want,
    heard(frame) {
      const { at } = frame;
      const leftAt = at && (store.state.left[at.conversation_id] ?? -1);
      if (at && isActivity(frame) && !chatOf(at.conversation_id) && at.seq > (leftAt ?? -1)) {
        want(at.conversation_id);
      }
    },
    reset() {
      wanted.clear();
    },
  };
}

/** Whether an answer is of another history than what was fetched. */
export const isOtherHistory = (
  { historyId }: Pick<State, "historyId">,
  { history_id = historyId }: { history_id?: string | null },
): boolean => historyId !== null && history_id !== historyId;

/** What makes a conversation appear in the list. */
const isActivity = ({ method }: EventFrame): boolean =>
  method === "events.messageNew" ||
  method === "events.conversationNew" ||
  method === "events.conversationUpdated";
