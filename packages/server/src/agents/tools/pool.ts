import { untilAborted } from "../../security/guarded-fetch.ts";
import type { Connection } from "./connection.ts";
import { PoolFull } from "./errors.ts";

/** A connection that nobody else uses until it is released. */
export interface PooledConnection {
  readonly connection: Connection;
  /** Whether it was used before. */
  readonly isReused: boolean;
  release(): void;
}

/** Says which connections may be shared: those that were opened with the same key. */
export interface PoolKey {
  readonly key: string;
  /** Whose connections they are; null for those that everybody shares. */
  readonly owner_id: number | null;
}

export interface ConnectionPool {
  /**
   * Returns a connection of the key: an idle one, or a new one. Waits while the key has as many as it
   * may have. Rejects with what `open` rejects with, with `PoolFull`, or after an abort.
   */
  acquire(
    { key, owner_id }: PoolKey,
    open: () => Promise<Connection>,
    signal: AbortSignal,
  ): Promise<PooledConnection>;
  /** Closes the idle connections of a key; those in use are closed when they are released. */
  drop(key: string): void;
  /** How many connections are open. */
  size(): number;
  /** Closes all connections. */
  close(): Promise<void>;
}

/** Calls to one server at the same time, for one person. */
const MAX_PER_KEY = 4;
/** A few people whose servers hang must not take the connections of all others. */
const MAX_PER_OWNER = 32;
const MAX_OPEN = 1024;
/** Connections are kept for the next calls of a conversation. */
const IDLE_MS = 3 * 60_000;

interface Slot extends PoolKey {
  readonly idle: Set<Connection>;
  /** Connections, and attempts to connect. */
  count: number;
  /** Woken when a connection is released or closed. */
  readonly waiting: Set<() => void>;
  /** Goes up when all connections so far are dropped. */
  generation: number;
}

export function connectionPool(idleMs = IDLE_MS): ConnectionPool {
  const slots = new Map<string, Slot>();
  const closing = new Set<Promise<void>>();
  const timers = new Map<Connection, ReturnType<typeof setTimeout>>();
  let open = 0;

  function slotOf({ key, owner_id }: PoolKey): Slot {
    const known = slots.get(key);
    if (known) return known;
    const fresh = { idle: new Set<Connection>(), count: 0, waiting: new Set<() => void>() };
    const slot: Slot = { key, owner_id, ...fresh, generation: 0 };
    slots.set(key, slot);
    return slot;
  }

  function takeIdle(slot: Slot): Connection | null {
    for (const connection of slot.idle) {
      unpark(slot, connection);
      if (connection.isUsable) return connection;
      end(slot, connection);
    }
    return null;
  }

  function unpark(slot: Slot, connection: Connection): void {
    slot.idle.delete(connection);
    clearTimeout(timers.get(connection));
    timers.delete(connection);
  }

  function end(slot: Slot, connection: Connection): void {
    vacate(slot);
    const closed = connection.close().finally(() => closing.delete(closed));
    closing.add(closed);
  }

  function vacate(slot: Slot): void {
    open--;
    slot.count--;
    wake(slot);
  }

  function wake(slot: Slot): void {
    for (const resolve of slot.waiting) resolve();
    if (slot.count === 0 && slot.waiting.size === 0) slots.delete(slot.key);
  }

  /** Makes room for a connection by closing one that is idle elsewhere. */
  function makeRoom({ owner_id }: PoolKey): boolean {
    const all = [...slots.values()];
    const own = owner_id === null ? [] : all.filter((slot) => slot.owner_id === owner_id);
    const held = own.reduce((sum, { count }) => sum + count, 0);
    if (held >= MAX_PER_OWNER) return closeIdle(own);
    return open < MAX_OPEN || closeIdle(all);
  }

  function closeIdle(among: readonly Slot[]): boolean {
    for (const slot of among) {
      const [oldest] = slot.idle;
      if (!oldest) continue;
      unpark(slot, oldest);
      end(slot, oldest);
      return true;
    }
    return false;
  }

  function lease(slot: Slot, connection: Connection, isReused: boolean): PooledConnection {
    const { generation } = slot;
    return {
      connection,
      isReused,
      release() {
        if (generation !== slot.generation || connection.hasFailed) return end(slot, connection);
        slot.idle.add(connection);
        const expire = () => {
          unpark(slot, connection);
          end(slot, connection);
        };
        timers.set(connection, setTimeout(expire, idleMs));
        wake(slot);
      },
    };
  }

  async function turn(slot: Slot, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    slot.waiting.add(resolve);
    try {
      await untilAborted(promise, signal);
    } finally {
      slot.waiting.delete(resolve);
    }
  }

  return {
    async acquire(wanted, openOne, signal) {
      for (;;) {
        const slot = slotOf(wanted);
        const idle = takeIdle(slot);
        if (idle) return lease(slot, idle, true);
        if (slot.count >= MAX_PER_KEY) {
          await turn(slot, signal);
          continue;
        }
        if (!makeRoom(wanted)) {
          wake(slot);
          throw new PoolFull("too many connections to tool servers are open");
        }
        slots.set(wanted.key, slot);
        open++;
        slot.count++;
        try {
          return lease(slot, await openOne(), false);
        } catch (error) {
          vacate(slot);
          throw error;
        }
      }
    },
    drop(key) {
      const slot = slots.get(key);
      if (!slot) return;
      slot.generation++;
      for (const connection of slot.idle) {
        unpark(slot, connection);
        end(slot, connection);
      }
    },
    size: () => open,
    async close() {
      for (const key of [...slots.keys()]) this.drop(key);
      await Promise.all(closing);
    },
  };
}
