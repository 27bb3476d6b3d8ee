import { type ReservedSQL, SQL } from "bun";
import { Unavailable } from "../store.ts";

/** How a node reaches PostgreSQL. */
export interface PostgresOptions {
  readonly url: string;
  readonly tls: false | { readonly ca?: string; readonly rejectUnauthorized: boolean };
}

/**
 * A session that stands still in the middle of a transaction, as that of a paused process, is ended
 * by the server after so long, and whoever waits for what it held goes on.
 */
const IDLE_IN_TRANSACTION_MS = 5000;
/** Nobody waits longer than this for what another holds. */
const LOCK_MS = 8000;
const CONNECT_S = 5;

export function openPool(
  { url, tls }: PostgresOptions,
  connections: number,
  settings: Record<string, string> = {},
): SQL {
  return new SQL({
    adapter: "postgres",
    url,
    tls,
    max: connections,
    bigint: true,
    idleTimeout: 0,
    connectionTimeout: CONNECT_S,
    connection: {
      application_name: "parley",
      idle_in_transaction_session_timeout: `${IDLE_IN_TRANSACTION_MS}`,
      lock_timeout: `${LOCK_MS}`,
      // Every statement has an index; one that was planned while a table was still empty, and is
      // kept, would go through all of it later.
      enable_seqscan: "off",
      // Statements are short; compiling them costs more than it saves.
      jit: "off",
      ...settings,
    },
  });
}

/** One session with the server, for one group of units at a time. */
export interface Session {
  /** Statements leave at once and are answered in order: those of one moment share a round trip. */
  run<Row>(sql: string, values?: readonly unknown[]): Promise<Rows<Row>>;
}

export type Rows<Row> = Row[] & { count: number; command: string };

/** Sessions that are taken one at a time, and made anew when they break. */
export interface Sessions {
  use<Result>(work: (session: Session) => Promise<Result>): Promise<Result>;
  /** Gives them all back, once none is taken. */
  close(): Promise<void>;
}

export function sessions(pool: SQL, most: number): Sessions {
  const idle: ReservedSQL[] = [];
  const waiting: (() => void)[] = [];
  let taken = 0;

  async function take(): Promise<ReservedSQL> {
    while (taken >= most) await new Promise<void>((resolve) => waiting.push(resolve));
    taken++;
    try {
      return idle.pop() ?? (await pool.reserve());
    } catch (error) {
      back();
      throw lost(error) ? new Unavailable("the database cannot be reached") : error;
    }
  }

  function back(): void {
    taken--;
    waiting.shift()?.();
  }

  return {
    async use(work) {
      const reserved = await take();
      let broken = false;
      const run = async <Row>(sql: string, values: readonly unknown[] = []) => {
        try {
          const rows = await reserved.unsafe(sql, values as unknown[]);
          return numbered(rows) as unknown as Rows<Row>;
        } catch (error) {
          if (timedOut(error)) throw new Unavailable("the database took too long");
          if (!lost(error)) throw error;
          broken = true;
          throw new Unavailable("the database cannot be reached");
        }
      };
      try {
        return await work({ run });
      } finally {
        if (broken) reserved.release();
        else idle.push(reserved);
        back();
      }
    },
    close: async () => {
      while (taken > 0) await Bun.sleep(1);
      for (const reserved of idle) reserved.release();
    },
  };
}

/** Ids, counters and times are whole numbers far below 2^53. */
function numbered(rows: Record<string, unknown>[]): Record<string, unknown>[] {
  const first = rows[0];
  if (!first) return rows;
  const whole = Object.keys(first).filter((key) =>
    rows.some((row) => typeof row[key] === "bigint"),
  );
  for (const row of rows) {
    for (const key of whole) if (row[key] !== null) row[key] = Number(row[key]);
  }
  return rows;
}

/** The SQLSTATE of what the server refused. */
export const stateOf = (error: unknown): string | undefined =>
  error instanceof SQL.PostgresError && typeof error.errno === "string" ? error.errno : undefined;

/** Whether the session is gone: the link, or the server is starting, stopping or full. */
export function lost(error: unknown): boolean {
  const state = stateOf(error);
  if (state !== undefined) return /^(08|57P|53|25P03|28|3D)/.test(state);
  return error instanceof SQL.SQLError;
}

/** Whether the server cancelled a statement that took too long. */
const timedOut = (error: unknown) => stateOf(error) === "57014";

/** Two units got into each other's way; whichever was undone may run again. */
export const conflicting = (error: unknown) =>
  ["40001", "40P01", "23505", "55P03"].includes(stateOf(error) ?? "");

/** What the statements after a failed one are answered with. */
export const aborted = (error: unknown) => stateOf(error) === "25P02";
