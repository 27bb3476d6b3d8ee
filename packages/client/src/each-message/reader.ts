import type { EventFrame, Message } from "@parley/protocol";
import { createQueues } from "../async/queues.ts";
import { pause, retryDelayMs } from "../async/retry.ts";
import { isOutOfReach, isUnavailable } from "../errors.ts";
import { isStanding } from "../model/event-kinds.ts";
import type { EachOptions, KeyValueStorage, MessageListener, Operations } from "../types.ts";
import { missedMessages, type Search } from "./missed-messages.ts";
import { noPositions, readPositions } from "./positions.ts";
import { fetchCounters } from "./server-counters.ts";

type ReaderApi = Pick<Operations, "getChatHistory" | "getUpdates">;

/**
 * Delivers every message at least once, normally once, and those of a conversation in order, across
 * lost connections. After connecting it asks which conversations have changed and delivers the missed
 * messages; events wait until then. A position is stored when the listener is done: a message is
 * delivered again if the listener failed with `unavailable` or `rate_limited`, or if the process was
 * killed before. Not delivered are imported messages, and those that exist at the first start.
 */
export class MessageReader {
  readonly #api: ReaderApi;
  readonly #listener: MessageListener;
  readonly #storage: KeyValueStorage | undefined;
  readonly #name: string;
  readonly #onError: (error: unknown, message: Message) => void;
  readonly #inOrder = createQueues();
  /** Incremented when a connection is made or lost, so that work of an earlier one stops. */
  #connectionId = 0;
  #username: string | null = null;
  #positions = noPositions();
  /** Events that arrived before the counters were compared; null once they are. */
  #waiting: EventFrame[] | null = [];
  /** The highest counter value of each conversation whose messages are delivered or queued. */
  #queuedSeqs = new Map<string, number>();

  constructor(api: ReaderApi, listener: MessageListener, options: EachOptions) {
    this.#api = api;
    this.#listener = listener;
    this.#storage = options.storage;
    this.#name = options.name ?? "messages";
    this.#onError = options.onError ?? rejectUnhandled;
  }

  /** A connection was made with this account. */
  start(username: string): void {
    const connectionId = ++this.#connectionId;
    if (this.#username !== username) {
      this.#username = username;
      this.#positions = readPositions(this.#storage, this.#storageKey());
    }
    this.#waiting = [];
    void this.#repeat(connectionId, () => this.#compare(connectionId));
  }

  /** The connection was lost. */
  halt(): void {
    this.#connectionId++;
    this.#waiting = [];
  }

  handleEvent(frame: EventFrame): void {
    if (this.#waiting) this.#waiting.push(frame);
    else this.#queueEvent(frame);
  }

  #storageKey(): string {
    return `parley:${this.#name}:${this.#username}`;
  }

  #save(): void {
    if (this.#waiting === null) this.#positions.completeAt = new Date().toISOString();
    this.#storage?.setItem(this.#storageKey(), JSON.stringify(this.#positions));
  }

  #isObsolete(connectionId: number): boolean {
    return connectionId !== this.#connectionId;
  }

  /** Repeats a task until it succeeds or the connection is lost. The next connection starts again. */
  async #repeat(connectionId: number, task: () => Promise<void>): Promise<void> {
    for (let failures = 0; !this.#isObsolete(connectionId); failures++) {
      try {
        return await task();
      } catch (error) {
        if (!this.#isObsolete(connectionId)) await pause(retryDelayMs(failures, error));
      }
    }
  }

  /** Compares the positions with the server's counters, and queues what was missed. */
  async #compare(connectionId: number): Promise<void> {
    const positions = this.#positions;
    const { seqs, historyId, isServerBehind } = await fetchCounters(this.#api, positions);
    if (this.#isObsolete(connectionId)) return;
    const isOtherHistory = isServerBehind || (positions.historyId ?? historyId) !== historyId;
    positions.historyId = historyId;
    const events = this.#waiting ?? [];
    for (const [id, seq] of seqs) {
      const search = this.#searchFor(id, seq, isOtherHistory);
      this.#setFirstPosition(id, seq);
      this.#catchUp(id, seq, search);
    }
    for (const id of Object.keys(positions.chats)) if (!seqs.has(id)) delete positions.chats[id];
    this.#queuedSeqs = seqs;
    this.#waiting = null;
    this.#save();
    for (const frame of events) this.#queueEvent(frame);
  }

  /** How to find what was missed of a conversation; null if nothing was. */
  #searchFor(id: string, seq: number, isOtherHistory: boolean): Search | null {
    const { chats, completeAt } = this.#positions;
    const known = chats[id];
    const isFirstStart = completeAt === null;
    if (isOtherHistory || (!known && !isFirstStart)) return "byTime";
    return known && seq > known.seq ? "byPlace" : null;
  }

  /** Sets the position of a conversation that has none. */
  #setFirstPosition(id: string, seq: number): void {
    const { chats, completeAt } = this.#positions;
    if (completeAt !== null) {
      chats[id] ??= { seq: 0, id: null, at: completeAt };
      return;
    }
    // At the first start existing messages are not delivered, except those whose events wait.
    const firstEvent = firstSeq(this.#waiting ?? [], id) ?? Number.POSITIVE_INFINITY;
    chats[id] ??= { seq: Math.min(seq, firstEvent - 1), id: null, at: new Date().toISOString() };
  }

  /** Queues what a conversation has after its position, at least up to `seq`. */
  #catchUp(id: string, seq: number, search: Search | null): void {
    if (search === null) return;
    const connectionId = this.#connectionId;
    void this.#inOrder(id, () =>
      this.#repeat(connectionId, () => this.#deliverMissed(id, seq, search, connectionId)),
    );
  }

  async #deliverMissed(
    id: string,
    seq: number,
    search: Search,
    connectionId: number,
  ): Promise<void> {
    const { chats } = this.#positions;
    const position = chats[id];
    if (!position) return;
    try {
      for await (const message of missedMessages(this.#api, id, position, search)) {
        if (this.#isObsolete(connectionId)) return;
        await this.#deliver(message, connectionId);
      }
    } catch (error) {
      if (!isOutOfReach(error)) throw error;
      // Either the last message delivered is not in this history, or the conversation is gone.
      if (search === "byPlace") return this.#deliverMissed(id, seq, "byTime", connectionId);
      delete chats[id];
      return;
    }
    if (this.#isObsolete(connectionId)) return;
    const last = chats[id] ?? position;
    // The counter of another history may be lower. Delivering a message has set the position already.
    const isReset = search === "byTime" && last === position;
    chats[id] = { ...last, seq: isReset ? seq : Math.max(seq, last.seq) };
    this.#save();
  }

  /** Delivers a message and moves the position, unless the connection is lost meanwhile. */
  async #deliver(message: Message, connectionId: number): Promise<void> {
    const { conversation_id, id, seq, created_at, imported } = message;
    // Listeners that answer messages must not answer those of the past.
    if (!imported && !(await this.#callListener(message, connectionId))) return;
    const { chats } = this.#positions;
    const at = imported ? (chats[conversation_id]?.at ?? created_at) : created_at;
    chats[conversation_id] = { seq, id, at };
    this.#save();
  }

  /** Calls the listener until it is done. False if the connection is lost: the next one delivers again. */
  async #callListener(message: Message, connectionId: number): Promise<boolean> {
    for (let failures = 0; ; failures++) {
      try {
        await this.#listener(message);
        return true;
      } catch (error) {
        if (!isUnavailable(error)) {
          this.#onError(error, message);
          return true;
        }
        if (!this.#isObsolete(connectionId)) await pause(retryDelayMs(failures, error));
        if (this.#isObsolete(connectionId)) return false;
      }
    }
  }

  /** Queues what an event brings, and before it what was missed. */
  #queueEvent(frame: EventFrame): void {
    if (!frame.at) return;
    const connectionId = this.#connectionId;
    const { conversation_id: chatId, seq } = frame.at;
    const before = this.#queuedSeqs.get(chatId);
    // The first event of a conversation is its next change, or has its current counter.
    const startSeq = isStanding(frame) ? seq : seq - 1;
    this.#positions.chats[chatId] ??= { seq: startSeq, id: null, at: new Date().toISOString() };
    if (before !== undefined && seq > before + 1) this.#catchUp(chatId, seq - 1, "byPlace");
    this.#queuedSeqs.set(chatId, Math.max(seq, before ?? 0));
    void this.#inOrder(chatId, async () => {
      const position = this.#positions.chats[chatId];
      if (this.#isObsolete(connectionId) || !position || seq <= position.seq) return;
      if (frame.method === "events.messageNew") await this.#deliver(frame.params, connectionId);
      else this.#positions.chats[chatId] = { ...position, seq };
    });
  }
}

const firstSeq = (frames: readonly EventFrame[], chatId: string): number | undefined =>
  frames.find(({ at }) => at?.conversation_id === chatId)?.at?.seq;

/** Reports the error as an unhandled rejection. */
const rejectUnhandled = (error: unknown) => void Promise.reject(error);
