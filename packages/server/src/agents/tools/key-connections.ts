import { untilAborted } from "../../security/guarded-fetch.ts";
import type { Connection } from "./connection.ts";

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

export interface KeyConnectionsOptions {
  readonly owner_id: number | null;
  readonly idleMs: number;
  /** Is called when a connection is being closed. */
  onClosing(closed: Promise<void>): void;
  /** Is called when there are none left. */
  onEmpty(): void;
}

/** The connections of one key: in use, idle, and being opened. */
export class KeyConnections {
  readonly #options: KeyConnectionsOptions;
  /** Oldest first, with the timers that close them. */
  readonly #idle = new Map<Connection, NodeJS.Timeout>();
  readonly #waiting = new Set<() => void>();
  #count = 0;
  /** Goes up when all connections so far are dropped. */
  #generation = 0;

  constructor(options: KeyConnectionsOptions) {
    this.#options = options;
  }

  get owner_id(): number | null {
    return this.#options.owner_id;
  }

  /** How many there are, those that are being opened included. */
  get count(): number {
    return this.#count;
  }

  async open(connect: () => Promise<Connection>): Promise<PooledConnection> {
    this.#count++;
    try {
      return this.#lease(await connect(), false);
    } catch (error) {
      this.#vacate();
      throw error;
    }
  }

  takeIdle(): PooledConnection | null {
    for (const connection of this.#idle.keys()) {
      this.#unpark(connection);
      if (connection.isUsable) return this.#lease(connection, true);
      this.#end(connection);
    }
    return null;
  }

  /** Waits until a connection is released or closed. */
  async untilChanged(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add(resolve);
    try {
      await untilAborted(promise, signal);
    } finally {
      this.#waiting.delete(resolve);
    }
  }

  /** Closes the connection that has been idle for longest. False if none is idle. */
  closeIdle(): boolean {
    const [oldest] = this.#idle.keys();
    if (!oldest) return false;
    this.#expire(oldest);
    return true;
  }

  /** Closes the idle connections; those in use are closed when they are released. */
  drop(): void {
    this.#generation++;
    for (const connection of this.#idle.keys()) this.#expire(connection);
  }

  #lease(connection: Connection, isReused: boolean): PooledConnection {
    const generation = this.#generation;
    const release = () => {
      if (generation === this.#generation && !connection.hasFailed) this.#park(connection);
      else this.#end(connection);
    };
    return { connection, isReused, release };
  }

  #park(connection: Connection): void {
    const timer = setTimeout(() => this.#expire(connection), this.#options.idleMs);
    this.#idle.set(connection, timer);
    this.#wake();
  }

  #unpark(connection: Connection): void {
    clearTimeout(this.#idle.get(connection));
    this.#idle.delete(connection);
  }

  #expire(connection: Connection): void {
    this.#unpark(connection);
    this.#end(connection);
  }

  #end(connection: Connection): void {
    this.#vacate();
    this.#options.onClosing(connection.close());
  }

  #vacate(): void {
    this.#count--;
    this.#wake();
    if (this.#count === 0) this.#options.onEmpty();
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
  }
}
