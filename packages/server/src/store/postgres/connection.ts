import { type ReservedSQL, SQL } from "bun";
import { Unavailable } from "../store.ts";

/** How a node reaches PostgreSQL. */
export interface PostgresOptions {
  readonly url: string;
  readonly tls: false | { readonly ca?: string; readonly rejectUnauthorized: boolean };
}

/**
 * Idle time inside a transaction after which the server closes a connection, such as that of a paused
 * process, and releases its locks.
 */
const IDLE_IN_TRANSACTION_MS = 5000;
/** How long a statement waits for a lock of another transaction. */
const LOCK_TIMEOUT_MS = 8000;
/**
 * How long to wait for the answer to a statement of a unit while the server answers others: longer than
 * one waits for a lock.
 */
export const ANSWER_TIMEOUT_MS = LOCK_TIMEOUT_MS + 7000;
const CONNECT_TIMEOUT_S = 2;
/** Longer than a connection attempt may take. */
const RESERVE_TIMEOUT_MS = CONNECT_TIMEOUT_S * 1000 + 1000;
/** A statement without an answer after this time may have a server that hangs: another connection asks. */
const SUSPICION_MS = 2000;

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
    connectionTimeout: CONNECT_TIMEOUT_S,
    connection: {
      application_name: "parley",
      idle_in_transaction_session_timeout: `${IDLE_IN_TRANSACTION_MS}`,
      lock_timeout: `${LOCK_TIMEOUT_MS}`,
      // Every statement has an index. PostgreSQL caches plans: one that was made while a table was
      // empty would scan the whole table later.
      enable_seqscan: "off",
      // Statements are short: compiling them costs more than it saves.
      jit: "off",
      ...settings,
    },
  });
}

/** A connection to the server, used by one transaction at a time. */
export interface Connection {
  /** Sends a statement at once. Statements run in order; those sent together share a round trip. */
  run<Row>(sql: string, values?: readonly unknown[]): Promise<Rows<Row>>;
}

export type Rows<Row> = Row[] & { count: number; command: string };

/** The connection broke during a transaction, which the server then rolls back unless it is committing. */
export class ConnectionLost extends Unavailable {
  constructor(cause?: unknown) {
    super(REFUSALS[stateOf(cause) ?? ""] ?? "the database cannot be reached", { cause });
  }
}

const REFUSALS: Record<string, string> = {
  "53100": "the disk of the database is full",
  "25006": "the database is read-only",
};

/** The server hangs: it neither answers nor closes its connections. */
export class ServerSilent extends Unavailable {
  constructor() {
    super("the database does not answer");
  }
}

export type Connections = ReturnType<typeof connections>;

/** When to give up a statement that has no answer. */
export interface AnswerTimeout {
  readonly ms: number;
  readonly server: ServerProbe;
}

/**
 * A part of a pool's connections. Broken ones are replaced. Without a timeout, a statement may take as
 * long as it takes.
 */
export function connections(pool: SQL, most: number, timeout?: AnswerTimeout) {
  const idle: ReservedSQL[] = [];
  const waiting: (() => void)[] = [];
  let taken = 0;

  async function take(): Promise<ReservedSQL> {
    while (taken >= most) await new Promise<void>((resolve) => waiting.push(resolve));
    taken++;
    try {
      return idle.pop() ?? (await reserve(pool));
    } catch (error) {
      back();
      if (!lost(error) && !(error instanceof NoAnswer)) throw error;
      await timeout?.server.answers();
      if (timeout?.server.isSilent()) throw new ServerSilent();
      throw new Unavailable("the database cannot be reached");
    }
  }

  function back(): void {
    taken--;
    waiting.shift()?.();
  }

  return {
    /** Waits for a free connection and gives it to `work` for as long as that runs. */
    async use<Result>(work: (connection: Connection) => Promise<Result>): Promise<Result> {
      const server = timeout?.server;
      if (server?.isSilent() && !(await server.answers())) throw new ServerSilent();
      const reserved = await take();
      let broken = false;
      let hasNoAnswer = false;
      let isInTransaction = false;
      const run = async <Row>(sql: string, values: readonly unknown[] = []) => {
        try {
          const rows = await answerTo(reserved.unsafe(sql, values as unknown[]), timeout);
          isInTransaction = isOpenAfter((rows as unknown as Rows<Row>).command, isInTransaction);
          return numbered(rows) as unknown as Rows<Row>;
        } catch (error) {
          if (timedOut(error)) throw new Unavailable("the database took too long");
          hasNoAnswer ||= error instanceof NoAnswer;
          if (!hasNoAnswer && !lost(error)) throw error;
          broken = true;
          // Units are not tried again after their time is over if the database does not answer at all.
          throw hasNoAnswer ? new ServerSilent() : new ConnectionLost(error);
        }
      };
      try {
        return await work({ run });
      } finally {
        // Another transaction cannot begin on a connection that is still in an aborted one. If this
        // fails, the connection is closed.
        if (isInTransaction && !hasNoAnswer) await run("ROLLBACK").catch(() => {});
        // If this connection gets no answer, the idle ones would not get one either.
        if (hasNoAnswer) for (const each of [reserved, ...idle.splice(0)]) discard(each);
        // One that cannot be closed is lost already.
        else if (isInTransaction) await reserved.close().catch(() => {});
        else if (broken) reserved.release();
        else idle.push(reserved);
        back();
      }
    },
    /** Waits until none is in use, and returns them to the pool. */
    close: async () => {
      while (taken > 0) await Bun.sleep(1);
      for (const reserved of idle) reserved.release();
    },
  };
}

/** A connection that cannot be closed is lost already. */
const discard = (reserved: ReservedSQL) => void reserved.close({ timeout: 0 }).catch(() => {});

class NoAnswer extends Error {}

/** The answer to a statement. Rejects with `NoAnswer` when it takes too long, or the server hangs. */
async function answerTo<Answer>(answer: Promise<Answer>, timeout?: AnswerTimeout): Promise<Answer> {
  if (!timeout) return answer;
  const { server, ms } = timeout;
  const noAnswer = Promise.withResolvers<never>();
  const startedAt = performance.now();
  let isDone = false;
  let timer = setTimeout(check, Math.min(SUSPICION_MS, ms));
  async function check(): Promise<void> {
    const isLate = performance.now() - startedAt >= ms;
    if (isLate || !(await server.answers())) noAnswer.reject(new NoAnswer());
    else if (!isDone) timer = setTimeout(check, SUSPICION_MS);
  }
  try {
    return await Promise.race([answer, noAnswer.promise]);
  } finally {
    isDone = true;
    clearTimeout(timer);
  }
}

/** Rejects with `NoAnswer` when it takes too long. */
async function inTime<Answer>(answer: Promise<Answer>, ms: number): Promise<Answer> {
  const timeout = Promise.withResolvers<never>();
  const timer = setTimeout(() => timeout.reject(new NoAnswer()), ms);
  try {
    return await Promise.race([answer, timeout.promise]);
  } finally {
    clearTimeout(timer);
  }
}

/** Whether a connection is in a transaction after a statement that succeeded. */
function isOpenAfter(command: string, isOpenBefore: boolean): boolean {
  if (command === "BEGIN") return true;
  return isOpenBefore && command !== "COMMIT" && command !== "ROLLBACK";
}

/**
 * If a connection attempt times out while the pool has other connections, the pool never answers the
 * one who waited for it.
 */
async function reserve(pool: SQL): Promise<ReservedSQL> {
  const reserved = pool.reserve();
  try {
    return await inTime(reserved, RESERVE_TIMEOUT_MS);
  } catch (error) {
    reserved.then(
      (late) => late.release(),
      // Nobody waits for it any more.
      () => {},
    );
    throw error;
  }
}

/** Converts bigints to numbers: ids, counters and times are far below 2^53. */
export function numbered(rows: Record<string, unknown>[]): Record<string, unknown>[] {
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

/** The SQLSTATE of an error of the server. */
export const stateOf = (error: unknown): string | undefined =>
  error instanceof SQL.PostgresError && typeof error.errno === "string" ? error.errno : undefined;

/** Whether the connection is lost, or refused by a server that is starting, stopping or full. */
export function lost(error: unknown): boolean {
  const state = stateOf(error);
  // 25006: the server is a replica now, or was made read-only.
  if (state !== undefined) return /^(08|57P|53|25P03|25006|28|3D)/.test(state);
  return error instanceof SQL.SQLError;
}

/** Whether the server cancelled a statement that took too long. */
const timedOut = (error: unknown) => stateOf(error) === "57014";

/** Whether two units conflicted: the one that was rolled back may run again. */
export const conflicting = (error: unknown) =>
  ["40001", "40P01", "23505", "55P03"].includes(stateOf(error) ?? "");

/** Whether the statement came after a failed one of its transaction. */
export const aborted = (error: unknown) => stateOf(error) === "25P02";

/** How long a server that works may take to answer on a new connection. */
export const PROBE_MS = 1000;

export type ServerProbe = ReturnType<typeof serverProbe>;

/**
 * Tells a server that hangs from one that is slow. One that lost its power, or whose network did, never
 * answers and never closes a connection, and a statement may take long for good reasons.
 */
export function serverProbe(options: PostgresOptions) {
  let asking: Promise<boolean> | null = null;
  let isSilent = false;

  async function ask(): Promise<boolean> {
    const pool = openPool(options, 1);
    try {
      await inTime(pool.unsafe("SELECT 1"), PROBE_MS);
      isSilent = false;
      return true;
    } catch (error) {
      isSilent = error instanceof NoAnswer;
      // A refusal is an answer, such as that of a server with too many connections.
      return stateOf(error) !== undefined;
    } finally {
      asking = null;
      // A connection that cannot be closed is lost already.
      void pool.close({ timeout: 0 }).catch(() => {});
    }
  }

  return {
    /** Whether the server answers on a new connection. Calls at the same time share one. */
    answers(): Promise<boolean> {
      asking ??= ask();
      return asking;
    },
    /** Whether it did not answer in time when it was last asked. */
    isSilent: () => isSilent,
  };
}
