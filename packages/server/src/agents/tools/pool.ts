import { untilAborted } from "../../security/guarded-fetch.ts";
import type { Connection } from "./connection.ts";
import { ContactFailed } from "./errors.ts";

/** Calls to one server at the same time, for one person. */
const MAX_PER_KEY = 4;
/** A few people whose servers hang must not take the connections of all others. */
const MAX_PER_OWNER = 32;
const MAX_OPEN = 1024;
/** Connections are kept for the next calls of a conversation. */
const IDLE_MS = 3 * 60_000;

/** Says which connections may be shared: those that were opened with the same key. */
export interface PoolKey {
  readonly key: string;
  /** Whose connections they are; null for those that everybody shares. */
  readonly owner_id: number | null;
}

/** A connection that nobody else uses until it is released. */
export interface PooledConnection {
  readonly connection: Connection;
  /** Whether it was used before. */
  readonly isReused: boolean;
  release(): void;
}

/** A connection of the pool, or one that is being opened. */
interface Slot extends PoolKey {
  /** Set while nobody uses the connection: the timer closes it. */
  idle: { readonly connection: Connection; readonly timer: NodeJS.Timeout } | null;
  /** Closed when it is released, instead of kept. */
  isDropped: boolean;
}

export class ConnectionPool {
  /** Those that have been idle for longest come first among the idle ones. */
  readonly #slots = new Set<Slot>();
  readonly #closing = new Set<Promise<void>>();
  /** Called when a connection was released or closed. */
  readonly #waiting = new Set<() => void>();

  /**
   * Returns a connection of the key: an idle one, or a new one. Waits while the key has as many as it
   * may have. Rejects with what `open` rejects with, with a `ContactFailed`, or after an abort.
   */
  async acquire(
    wanted: PoolKey,
    open: () => Promise<Connection>,
    signal: AbortSignal,
  ): Promise<PooledConnection> {
    for (;;) {
      const idle = this.#takeIdle(wanted.key);
      if (idle) return idle;
      if (this.#of(wanted.key).length < MAX_PER_KEY) {
        this.#makeRoom(wanted);
        return this.#open(wanted, open);
      }
      await this.#untilChanged(signal);
    }
  }

  /** Closes the idle connections of a key; those in use are closed when they are released. */
  drop(key: string): void {
    this.#dropAll(this.#of(key));
  }

  /** How many connections are open. */
  size(): number {
    return this.#slots.size;
  }

  /** Closes all connections. */
  async close(): Promise<void> {
    this.#dropAll([...this.#slots]);
    await Promise.all(this.#closing);
  }

  #of(key: string): Slot[] {
    return [...this.#slots].filter((slot) => slot.key === key);
  }

  #takeIdle(key: string): PooledConnection | null {
    for (const slot of this.#of(key)) {
      if (!slot.idle) continue;
      const { connection, timer } = slot.idle;
      if (connection.isUsable) {
        clearTimeout(timer);
        slot.idle = null;
        return this.#lease(slot, connection, true);
      }
      this.#closeIdle(slot);
    }
    return null;
  }

  async #open({ key, owner_id }: PoolKey, open: () => Promise<Connection>) {
    const slot: Slot = { key, owner_id, idle: null, isDropped: false };
    this.#slots.add(slot);
    try {
      return this.#lease(slot, await open(), false);
    } catch (error) {
      this.#remove(slot);
      throw error;
    }
  }

  #lease(slot: Slot, connection: Connection, isReused: boolean): PooledConnection {
    const release = () => {
      if (slot.isDropped || connection.hasFailed) return this.#end(slot, connection);
      const timer = setTimeout(() => this.#closeIdle(slot), IDLE_MS);
      slot.idle = { connection, timer };
      this.#slots.delete(slot);
      this.#slots.add(slot);
      this.#wake();
    };
    return { connection, isReused, release };
  }

  /** Closes an idle connection if there are too many for one more. Throws a `ContactFailed` if none is idle. */
  #makeRoom({ owner_id }: PoolKey): void {
    const all = [...this.#slots];
    const own = owner_id === null ? [] : all.filter((slot) => slot.owner_id === owner_id);
    const isOwnFull = own.length >= MAX_PER_OWNER;
    if (!isOwnFull && all.length < MAX_OPEN) return;
    const idle = (isOwnFull ? own : all).find((slot) => slot.idle !== null);
    if (!idle) throw new ContactFailed("Too many calls of tools are in progress.");
    this.#closeIdle(idle);
  }

  #dropAll(slots: readonly Slot[]): void {
    for (const slot of slots) {
      slot.isDropped = true;
      this.#closeIdle(slot);
    }
  }

  #closeIdle(slot: Slot): void {
    if (!slot.idle) return;
    clearTimeout(slot.idle.timer);
    this.#end(slot, slot.idle.connection);
  }

  #end(slot: Slot, connection: Connection): void {
    this.#remove(slot);
    const closed = connection.close();
    this.#closing.add(closed);
    void closed.finally(() => this.#closing.delete(closed));
  }

  #remove(slot: Slot): void {
    this.#slots.delete(slot);
    this.#wake();
  }

  async #untilChanged(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    await untilAborted(promise, signal).finally(() => this.#waiting.delete(resolve));
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
  }
}
