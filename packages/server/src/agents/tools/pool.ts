import type { Connection } from "./connection.ts";
import { ContactFailed } from "./errors.ts";
import { KeyConnections, type PooledConnection, type PoolKey } from "./key-connections.ts";

/** Calls to one server at the same time, for one person. */
const MAX_PER_KEY = 4;
/** A few people whose servers hang must not take the connections of all others. */
const MAX_PER_OWNER = 32;
const MAX_OPEN = 1024;
/** Connections are kept for the next calls of a conversation. */
const IDLE_MS = 3 * 60_000;

export class ConnectionPool {
  /** The keys that have connections, or attempts to connect. */
  readonly #keys = new Map<string, KeyConnections>();
  readonly #closing = new Set<Promise<void>>();

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
      const connections = this.#keys.get(wanted.key) ?? this.#connectionsOf(wanted);
      const idle = connections.takeIdle();
      if (idle) return idle;
      if (connections.count < MAX_PER_KEY) {
        this.#makeRoom(wanted);
        this.#keys.set(wanted.key, connections);
        return connections.open(open);
      }
      await connections.untilChanged(signal);
    }
  }

  /** Closes the idle connections of a key; those in use are closed when they are released. */
  drop(key: string): void {
    this.#keys.get(key)?.drop();
  }

  /** How many connections are open. */
  size(): number {
    return total(this.#keys.values());
  }

  /** Closes all connections. */
  async close(): Promise<void> {
    for (const connections of [...this.#keys.values()]) connections.drop();
    await Promise.all(this.#closing);
  }

  #connectionsOf({ key, owner_id }: PoolKey): KeyConnections {
    return new KeyConnections({
      owner_id,
      idleMs: IDLE_MS,
      onClosing: (closed) => {
        this.#closing.add(closed);
        void closed.finally(() => this.#closing.delete(closed));
      },
      onEmpty: () => this.#keys.delete(key),
    });
  }

  /** Closes an idle connection if there are too many for one more. Throws a `ContactFailed` if none is idle. */
  #makeRoom({ owner_id }: PoolKey): void {
    const all = [...this.#keys.values()];
    const own = owner_id === null ? [] : all.filter((each) => each.owner_id === owner_id);
    const isOwnFull = total(own) >= MAX_PER_OWNER;
    if (!isOwnFull && total(all) < MAX_OPEN) return;
    const hasClosed = (isOwnFull ? own : all).some((each) => each.closeIdle());
    if (!hasClosed) throw new ContactFailed("Too many calls of tools are in progress.");
  }
}

function total(among: Iterable<KeyConnections>): number {
  let sum = 0;
  for (const { count } of among) sum += count;
  return sum;
}
