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

/** A connection of the pool, or one that is being opened. */
interface Slot extends PoolKey {
  /** Set while nobody uses the connection: the timer closes it. */
  idle: { readonly connection: Connection; readonly timer: NodeJS.Timeout } | null;
  /** Closed when it is released, instead of kept. */
  isDropped: boolean;
}

export function createConnectionPool() {
  /** Those that have been idle for longest come first among the idle ones. */
  const slots = new Set<Slot>();
  const closing = new Set<Promise<void>>();
  /** Resolves when a connection is released or closed. */
  let changed = Promise.withResolvers<void>();

  const slotsOf = (key: string) => [...slots].filter((slot) => slot.key === key);

  function wake(): void {
    changed.resolve();
    changed = Promise.withResolvers();
  }

  function takeIdle(key: string) {
    for (const slot of slotsOf(key)) {
      if (!slot.idle) continue;
      const { connection, timer } = slot.idle;
      if (connection.isUsable) {
        clearTimeout(timer);
        slot.idle = null;
        return lease(slot, connection, true);
      }
      closeIdle(slot);
    }
    return null;
  }

  async function openNew({ key, owner_id }: PoolKey, open: () => Promise<Connection>) {
    const slot: Slot = { key, owner_id, idle: null, isDropped: false };
    slots.add(slot);
    try {
      return lease(slot, await open(), false);
    } catch (error) {
      remove(slot);
      throw error;
    }
  }

  /** A connection that nobody else uses until it is released. `isReused`: it was used before. */
  function lease(slot: Slot, connection: Connection, isReused: boolean) {
    const release = () => {
      if (slot.isDropped || connection.hasFailed) return end(slot, connection);
      const timer = setTimeout(() => closeIdle(slot), IDLE_MS);
      slot.idle = { connection, timer };
      slots.delete(slot);
      slots.add(slot);
      wake();
    };
    return { connection, isReused, release };
  }

  /** Closes an idle connection if there are too many for one more. Throws a `ContactFailed` if none is idle. */
  function makeRoom({ owner_id }: PoolKey): void {
    const all = [...slots];
    const own = owner_id === null ? [] : all.filter((slot) => slot.owner_id === owner_id);
    const isOwnFull = own.length >= MAX_PER_OWNER;
    if (!isOwnFull && all.length < MAX_OPEN) return;
    const idle = (isOwnFull ? own : all).find((slot) => slot.idle !== null);
    if (!idle) throw new ContactFailed("Too many calls of tools are in progress.");
    closeIdle(idle);
  }

  function dropAll(dropped: readonly Slot[]): void {
    for (const slot of dropped) {
      slot.isDropped = true;
      closeIdle(slot);
    }
  }

  function closeIdle(slot: Slot): void {
    if (!slot.idle) return;
    clearTimeout(slot.idle.timer);
    end(slot, slot.idle.connection);
  }

  function end(slot: Slot, connection: Connection): void {
    remove(slot);
    const closed = connection.close();
    closing.add(closed);
    void closed.finally(() => closing.delete(closed));
  }

  function remove(slot: Slot): void {
    slots.delete(slot);
    wake();
  }

  return {
    /**
     * Returns a connection of the key: an idle one, or a new one. Waits while the key has as many as it
     * may have. Rejects with what `open` rejects with, with a `ContactFailed`, or after an abort.
     */
    async acquire(wanted: PoolKey, open: () => Promise<Connection>, signal: AbortSignal) {
      for (;;) {
        const idle = takeIdle(wanted.key);
        if (idle) return idle;
        if (slotsOf(wanted.key).length < MAX_PER_KEY) {
          makeRoom(wanted);
          return openNew(wanted, open);
        }
        await untilAborted(changed.promise, signal);
      }
    },
    /** Closes the idle connections of a key; those in use are closed when they are released. */
    drop: (key: string) => dropAll(slotsOf(key)),
    size: () => slots.size,
    async close(): Promise<void> {
      dropAll([...slots]);
      await Promise.all(closing);
    },
  };
}
