import type { EventFrame, Message } from "@parley/protocol";
import { lanes, pause, pauseBefore } from "../async/retry.ts";
import { isOutOfReach, isTemporary } from "../errors.ts";
import type { EachOptions, KeyValueStorage, MessageListener, Operations } from "../types.ts";

const PAGE = 100;
/** One call has room for more than twice as many counters. */
const COUNTERS_PER_CALL = 2000;

/** Up to where the messages of a conversation were delivered. */
interface Position {
  /** The conversation's counter: every message up to it was delivered. */
  readonly seq: number;
  /** The last message delivered; null if there is none. */
  readonly id: string | null;
  /** When that was created; otherwise from when on messages are delivered. */
  readonly at: string;
}

interface Positions {
  historyId: string | null;
  /** When nothing was missing; null before the first start. */
  completeAt: string | null;
  chats: Record<string, Position>;
}

export interface MessageReader {
  /** A connection was made, by this account. */
  start(username: string): void;
  heard(frame: EventFrame): void;
  /** The connection was lost. */
  halt(): void;
}

/**
 * Delivers every message once, those of a conversation in order, across lost connections. At the
 * start of a connection it asks which conversations have changed and reads what it missed; the
 * events of the connection wait for that. A position moves on when the listener is done.
 */
export function messageReader(
  api: Pick<Operations, "getChatHistory" | "getUpdates">,
  listener: MessageListener,
  { storage, name = "messages", onError = throwOutside }: EachOptions,
): MessageReader {
  /** Changes with every connection: what began in an earlier one stops. */
  let connection = 0;
  let account: string | null = null;
  let positions = nowhere();
  /** Events that wait for the comparison at the start of the connection; null when it is done. */
  let waiting: EventFrame[] | null = [];
  /** The counters of the events that were put in line. */
  let counters = new Map<string, number>();
  const inOrder = lanes();

  const key = () => `parley:${name}:${account}`;

  function save(): void {
    if (waiting === null) positions.completeAt = new Date().toISOString();
    storage?.setItem(key(), JSON.stringify(positions));
  }

  /** Tries until it is done or the connection is lost, after which all is compared again. */
  async function untilDone(mine: number, task: () => Promise<void>): Promise<void> {
    for (let tries = 0; mine === connection; tries++) {
      try {
        return await task();
      } catch (error) {
        if (mine === connection) await pause(pauseBefore(tries, error));
      }
    }
  }

  async function compare(mine: number): Promise<void> {
    const { seqs, historyId, isBehind } = await serverCounters(api, positions);
    if (mine !== connection) return;
    const { completeAt } = positions;
    const isOther = isBehind || (positions.historyId ?? historyId) !== historyId;
    positions.historyId = historyId;
    const held = waiting ?? [];
    for (const [id, seq] of seqs) {
      const isKnown = positions.chats[id] !== undefined;
      // At the very first start, what is there was there before, but for what was heard since.
      const isFirst = completeAt === null;
      const from = Math.min(seq, (firstSeq(held, id) ?? Number.POSITIVE_INFINITY) - 1);
      const at = completeAt ?? new Date().toISOString();
      const position = positions.chats[id] ?? { seq: isFirst ? from : 0, id: null, at };
      positions.chats[id] = position;
      if (isOther || (!isKnown && !isFirst)) catchUp(id, seq, "byTime");
      else if (isKnown && seq > position.seq) catchUp(id, seq, "byPlace");
    }
    for (const id of Object.keys(positions.chats)) if (!seqs.has(id)) delete positions.chats[id];
    counters = seqs;
    waiting = null;
    save();
    for (const frame of held) follow(frame);
  }

  /** Delivers what a conversation has beyond its position, up to the counter at least. */
  function catchUp(id: string, seq: number, how: "byPlace" | "byTime"): void {
    const mine = connection;
    void inOrder(id, () => untilDone(mine, () => readOn(id, seq, how, mine)));
  }

  async function readOn(
    id: string,
    seq: number,
    how: "byPlace" | "byTime",
    mine: number,
  ): Promise<void> {
    const position = positions.chats[id];
    if (!position) return;
    try {
      for await (const message of missed(api, id, position, how)) {
        if (mine !== connection) return;
        await deliver(message, mine);
      }
    } catch (error) {
      if (!isOutOfReach(error)) throw error;
      // Either the last message delivered is not in this history, or the conversation is gone.
      if (how === "byPlace") return readOn(id, seq, "byTime", mine);
      delete positions.chats[id];
      return;
    }
    if (mine !== connection) return;
    const last = positions.chats[id] ?? position;
    const isReset = how === "byTime" && last === position;
    positions.chats[id] = { ...last, seq: isReset ? seq : Math.max(seq, last.seq) };
    save();
  }

  /** Without a connection the position stays: the next connection delivers the message again. */
  async function deliver(message: Message, mine: number): Promise<void> {
    for (let tries = 0; ; tries++) {
      try {
        await listener(message);
        break;
      } catch (error) {
        if (!isTemporary(error)) {
          onError(error, message);
          break;
        }
        if (mine === connection) await pause(pauseBefore(tries, error));
        if (mine !== connection) return;
      }
    }
    const { conversation_id, id, seq, created_at } = message;
    positions.chats[conversation_id] = { seq, id, at: created_at };
    save();
  }

  function follow(frame: EventFrame): void {
    const { at } = frame;
    if (!at) return;
    const mine = connection;
    const { conversation_id: chatId, seq } = at;
    const before = counters.get(chatId);
    const isNew = frame.method === "events.conversationNew";
    // The caller's own new conversations are known by their first event.
    const from = isNew ? seq : seq - 1;
    positions.chats[chatId] ??= { seq: from, id: null, at: new Date().toISOString() };
    if (before !== undefined && seq > before + 1) catchUp(chatId, seq - 1, "byPlace");
    counters.set(chatId, Math.max(seq, before ?? 0));
    void inOrder(chatId, async () => {
      const position = positions.chats[chatId];
      if (mine !== connection || !position || seq <= position.seq) return;
      if (frame.method === "events.messageNew") await deliver(frame.params, mine);
      else positions.chats[chatId] = { ...position, seq };
    });
  }

  return {
    start(username) {
      const mine = ++connection;
      if (account !== username) {
        account = username;
        positions = read(storage, key());
      }
      waiting = [];
      void untilDone(mine, () => compare(mine));
    },
    heard(frame) {
      if (waiting) waiting.push(frame);
      else follow(frame);
    },
    halt() {
      connection++;
      waiting = [];
    },
  };
}

const firstSeq = (frames: readonly EventFrame[], chatId: string): number | undefined =>
  frames.find(({ at }) => at?.conversation_id === chatId)?.at?.seq;

const nowhere = (): Positions => ({ historyId: null, completeAt: null, chats: {} });

function read(storage: KeyValueStorage | undefined, key: string): Positions {
  const kept = storage?.getItem(key);
  return kept ? (JSON.parse(kept) as Positions) : nowhere();
}

/** As an unhandled rejection. */
const throwOutside = (error: unknown) => void Promise.reject(error);

/** The counter of every conversation of the account, and whether some are below the known ones. */
async function serverCounters(
  api: Pick<Operations, "getUpdates">,
  { chats, historyId: before }: Positions,
) {
  const seqs = new Map<string, number>();
  let historyId = before;
  let isBehind = false;
  const all = Object.entries(chats);
  for (let from = 0; from === 0 || from < all.length; from += COUNTERS_PER_CALL) {
    const some = all.slice(from, from + COUNTERS_PER_CALL).map(([id, { seq }]) => [id, seq]);
    const known: Record<string, number> = Object.fromEntries(some);
    const compared = await api.getUpdates({ known });
    if (!("gone" in compared)) continue;
    historyId = compared.history_id ?? null;
    isBehind ||= (compared.behind ?? []).length > 0;
    for (const id of compared.gone) delete known[id];
    for (const [id, seq] of Object.entries(known)) seqs.set(id, seq);
    const { ahead, behind = [], new: others } = compared;
    for (const { conversation_id, seq } of [...ahead, ...behind]) seqs.set(conversation_id, seq);
    // Those of other calls are new to this one only.
    const isUnknown = ({ conversation_id }: { conversation_id: string }) =>
      chats[conversation_id] === undefined;
    for (const { conversation_id, seq } of others.filter(isUnknown)) seqs.set(conversation_id, seq);
  }
  return { seqs, historyId, isBehind };
}

/**
 * The messages of a conversation after a position, oldest first: by their place, or by their time if
 * the position is of another history or of none.
 */
async function* missed(
  api: Pick<Operations, "getChatHistory">,
  chat_id: string,
  { id, seq, at }: Position,
  how: "byPlace" | "byTime",
): AsyncGenerator<Message> {
  if (how === "byTime") yield* latest(api, chat_id, ({ created_at }) => created_at > at);
  else if (id === null) yield* latest(api, chat_id, (message) => message.seq > seq);
  else yield* after(api, chat_id, id);
}

async function* after(
  api: Pick<Operations, "getChatHistory">,
  chat_id: string,
  id: string,
): AsyncGenerator<Message> {
  for (let last: string | undefined = id; last !== undefined; ) {
    const page: HistoryPage = await api.getChatHistory({ chat_id, after: last, limit: PAGE });
    yield* page.items;
    last = page.has_more ? page.items.at(-1)?.id : undefined;
  }
}

type HistoryPage = Awaited<ReturnType<Operations["getChatHistory"]>>;

/** The latest messages, as far back as they are wanted. */
async function* latest(
  api: Pick<Operations, "getChatHistory">,
  chat_id: string,
  isWanted: (message: Message) => boolean,
): AsyncGenerator<Message> {
  const found: Message[] = [];
  for (let before: string | undefined, isMore = true; isMore; before = found[0]?.id) {
    const page: HistoryPage = await api.getChatHistory({
      chat_id,
      limit: PAGE,
      ...(before !== undefined && { before }),
    });
    const wanted = page.items.filter(isWanted);
    found.unshift(...wanted);
    isMore = page.has_more && wanted.length === page.items.length && wanted.length > 0;
  }
  yield* found;
}
