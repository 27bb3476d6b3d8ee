import type { Delivery } from "@parley/protocol";
import type { Change, LoggedChange } from "../changes/change.ts";
import type { ChangeLog, Cursor, LogEntry } from "../changes/log.ts";
import type { BackgroundRunner } from "./background-work.ts";
import { type Either, NOW, raw, type Sql, sql } from "./sql.ts";

export type { ChangeLog, Cursor, LogEntry };

/**
 * Encodes the durable changes of a transaction for the log, in their order; null when there are none.
 * This runs in every transaction.
 */
export function encodeChanges(changes: readonly Change[]): string | null {
  let body = "";
  for (const change of changes) {
    if (change.kind === "event" && change.delivery === "transient") continue;
    body += `${body === "" ? "[" : ","}${encodeChange(change)}`;
  }
  return body === "" ? null : `${body}]`;
}

function encodeChange(change: Change): string {
  if (change.kind !== "event" || change.shows === undefined) return JSON.stringify(change);
  return JSON.stringify({ ...change, data: change.outline, outline: undefined });
}

const KINDS: Record<Exclude<LoggedChange["kind"], "event">, true> = {
  session_ended: true,
  account_suspended: true,
  presence_changed: true,
  elicitation_answered: true,
  turns_queued: true,
  turns_ended: true,
};
const DELIVERIES: Record<Exclude<Delivery, "transient">, true> = {
  counted: true,
  standing: true,
  durable: true,
};

/**
 * Decodes an entry of the log. Unknown fields are kept, and changes of unknown kinds are left out:
 * a node of a newer version may have written them. No schema checks the rest, which only nodes write:
 * every node reads every change, and the check would take four times as long as the decoding.
 */
const decodeChanges = (body: string): LoggedChange[] =>
  (JSON.parse(body) as LoggedChange[]).filter(isKnown);

const isKnown = (change: LoggedChange) =>
  change.kind === "event"
    ? Object.hasOwn(DELIVERIES, change.delivery)
    : Object.hasOwn(KINDS, change.kind);

export interface EntryRow {
  id: number;
  node: string;
  body: string;
}

export const entryOf = ({ id, node, body }: EntryRow): LogEntry => ({
  cursor: id,
  node,
  changes: body === "[]" ? [] : decodeChanges(body),
});

/** When entries of the log are pruned. */
export interface LogLimits {
  readonly keptMs: number;
  readonly maxEntries: number;
  /** Of all entries together, estimated from a sample. */
  readonly maxBytes: number;
  readonly pruneEveryMs: number;
}

/** A subscriber that was away for longer fetches the state instead. */
export const LOG_LIMITS: LogLimits = {
  keptMs: 7 * 24 * 60 * 60_000,
  maxEntries: 1_000_000,
  maxBytes: 1024 ** 3,
  pruneEveryMs: 60_000,
};

/** Few at a time, because other writers wait meanwhile. */
const PRUNED_AT_ONCE = 200;

/** The average size of entries. */
const AVERAGE_BYTES: Either = {
  postgres: sql`avg(pg_column_size(body))::bigint`,
  sqlite: sql`avg(octet_length(body))`,
};

/** Prunes some of the oldest entries; true when more are left. Every node does it. */
export async function pruneChanges(db: Sql, limits: LogLimits): Promise<boolean> {
  const oldest = await db.all<{ id: Cursor; at: number }>`
    SELECT id, at FROM changes ORDER BY id LIMIT ${raw(PRUNED_AT_ONCE)}`;
  const newest = await db.get<{ id: Cursor | null; now: number }>`
    SELECT max(id) AS id, ${NOW} AS now FROM changes`;
  const last = newest?.id ?? 0;
  const sample = sampleIds(oldest[0]?.id ?? 0, last);
  const averageBytes = await db.firstNumber`
    SELECT ${AVERAGE_BYTES} AS bytes FROM changes WHERE id = ANY(${sample}::bigint[])`;
  const size = { oldest, last, averageBytes, now: newest?.now ?? 0 };
  const upTo = pruneUpTo(size, limits);
  if (upTo === null) return false;
  await db.change`DELETE FROM changes WHERE id <= ${upTo}`;
  await db.change`
    INSERT INTO changes_pruned AS p (one, up_to) VALUES (true, ${upTo})
    ON CONFLICT (one) DO UPDATE SET up_to = greatest(p.up_to, excluded.up_to)`;
  return upTo === oldest.at(-1)?.id;
}

const SAMPLED_ENTRIES = 100;

/** Ids spread evenly over the log, whose average size stands for that of all entries. */
function sampleIds(first: Cursor, last: Cursor): Cursor[] {
  const step = Math.max(1, (last - first) / SAMPLED_ENTRIES);
  const ids: Cursor[] = [];
  for (let id = first; id <= last; id += step) ids.push(Math.floor(id));
  return ids;
}

interface LogSize {
  /** The oldest entries, in order. */
  readonly oldest: readonly { id: Cursor; at: number }[];
  readonly last: Cursor;
  readonly averageBytes: number;
  readonly now: number;
}

/** The last of the oldest entries to prune; null when all are kept. The newest one always is. */
function pruneUpTo({ oldest, last, averageBytes, now }: LogSize, limits: LogLimits) {
  const maxEntries = Math.min(limits.maxEntries, limits.maxBytes / Math.max(1, averageBytes));
  let upTo: Cursor | null = null;
  for (const { id, at } of oldest) {
    if (id === last || (id > last - maxEntries && at >= now - limits.keptMs)) break;
    upTo = id;
  }
  return upTo;
}

/** Prunes batches of entries until none are left to prune, at intervals. */
export function pruneRegularly(
  background: BackgroundRunner,
  everyMs: number,
  pruneBatch: () => Promise<boolean>,
) {
  let round: Promise<void> | null = null;
  let stopped = false;
  const prune = async () => {
    while (!stopped && (await pruneBatch()));
  };
  const timer = setInterval(() => {
    round ??= background.run("pruning", prune).finally(() => {
      round = null;
    });
  }, everyMs);
  return {
    stop: async () => {
      stopped = true;
      clearInterval(timer);
      await round;
    },
  };
}

export const changeReads = {
  /**
   * A restore from a backup takes data back that clients have seen. The id of the history changes then,
   * so that clients can tell and start over.
   */
  async historyId(db: Sql): Promise<string> {
    return (await db.firstValue<string>`SELECT id FROM history`) ?? "";
  },
};

/** The positions of subscriptions: `SubscriptionWrites` documents their methods. */
export const changeWrites = {
  /** Gives the history a new id, for restores that the store cannot detect. */
  async renewHistory(db: Sql): Promise<void> {
    await db.change`UPDATE history SET id = ${Bun.randomUUIDv7()}`;
  },
  async claimSubscription(db: Sql, name: string, node: string, leaseMs: number, from: Cursor) {
    // Does not wait: a node that is paused while it saves the cursor must not delay the others.
    const [claimed] = await db.changed<{ cursor: Cursor }>`
      UPDATE subscriptions SET node = ${node}, leased_until = ${NOW} + ${leaseMs}::bigint
      WHERE name = (SELECT name FROM subscriptions
        WHERE name = ${name} AND (node = ${node} OR leased_until <= ${NOW}) FOR UPDATE SKIP LOCKED)
      RETURNING cursor`;
    if (claimed) return claimed.cursor;
    const [begun] = await db.changed<{ cursor: Cursor }>`
      INSERT INTO subscriptions (name, cursor, node, leased_until)
      SELECT ${name}, ${from}, ${node}, ${NOW} + ${leaseMs}::bigint
      WHERE NOT EXISTS (SELECT 1 FROM subscriptions WHERE name = ${name})
      ON CONFLICT (name) DO NOTHING RETURNING cursor`;
    return begun?.cursor ?? null;
  },
  saveSubscription: (db: Sql, name: string, node: string, cursor: Cursor, leaseMs: number) =>
    db.hasChanged`
      UPDATE subscriptions SET cursor = ${cursor}, leased_until = ${NOW} + ${leaseMs}::bigint
      WHERE name = ${name} AND node = ${node}`,
  async advanceSubscription(db: Sql, name: string, to: Cursor): Promise<void> {
    await db.change`
      INSERT INTO subscriptions AS s (name, cursor, node, leased_until)
      VALUES (${name}, ${to}, '', 0)
      ON CONFLICT (name) DO UPDATE SET cursor = greatest(s.cursor, excluded.cursor)`;
  },
  deleteSubscription: (db: Sql, name: string, node: string) =>
    db.remove("subscriptions", { name, node }),
};
