import type { Change } from "../../changes/change.ts";
import {
  type ChangeLog,
  type Cursor,
  type EntryRow,
  encodeChanges,
  entryOf,
  type LogEntry,
} from "../changes.ts";
import type { Connection } from "../postgres/connection.ts";
import { prepared, type Unit } from "../postgres/unit.ts";
import { NOW, raw, sql } from "../sql.ts";

/** How long to wait for an entry that is missing because its transaction has not ended. */
const GAP_WAIT_MS = 1000;
const GAP_RETRY_MS = 5;
/** How long to wait before looking again for an entry whose COMMIT was not acknowledged; it doubles. */
const IN_DOUBT_RETRY_MS = 100;
const MAX_IN_DOUBT_RETRY_MS = 5000;
/**
 * How many of the newest entries `head` checks for gaps. A transaction takes its id immediately
 * before COMMIT and is ended by the server when it then stays idle, so an open gap is recent.
 */
const HEAD_ENTRIES = 10_000;

/**
 * Returns a function that appends the durable changes of a transaction to the log. It must
 * be the last statement before COMMIT: transactions that change the same conversation then take
 * their ids in commit order, because each takes it while it holds the conversation's lock.
 */
export const changeWriter =
  (node: string) =>
  async (connection: Connection, changes: readonly Change[]): Promise<Cursor | null> => {
    const body = encodeChanges(changes);
    if (body === null) return null;
    const [entry] = await connection.run<{ id: number }>(APPEND.text, [node, body]);
    return entry?.id ?? null;
  };

// The WHERE clause assigns the transaction's xid before the id is taken, see `openGaps`.
const APPEND = prepared(sql`
  INSERT INTO changes (at, node, body) SELECT ${NOW}, $1, $2
  WHERE pg_current_xact_id() IS NOT NULL RETURNING id`);

/** Whether an entry was committed. Resolves once that is certain, or with false when the store closes. */
export async function wasCommitted(log: ChangeLog, entry: Cursor, isClosed: () => boolean) {
  for (let retryMs = IN_DOUBT_RETRY_MS; !isClosed(); retryMs *= 2) {
    // A later entry comes first only once this one cannot appear any more. Reads fail while the
    // database is down.
    const entries = await log.read(entry - 1, 1).catch(() => []);
    if (entries === null) return false;
    if (entries[0]) return entries[0].cursor === entry;
    await Bun.sleep(Math.min(retryMs, MAX_IN_DOUBT_RETRY_MS));
  }
  return false;
}

/** Reads the log; `read` runs a unit in a snapshot of its own. */
export function changeLog(
  read: <Result>(unit: (unit: Unit) => Promise<Result>) => Promise<Result>,
): ChangeLog {
  const gaps = openGaps();
  return {
    head: () =>
      untilDeadline(
        () => read((unit) => findHead(unit, gaps)),
        ({ isFinal }) => isFinal,
      ).then(({ cursor }) => cursor),
    read: async (after, limit, skippedNode = "") => {
      const page = await untilDeadline(
        () => read((unit) => readPage(unit, gaps, { after, limit, skippedNode })),
        ({ entries, isBlocked }) => !isBlocked || entries === null || entries.length > 0,
      );
      return page.entries;
    },
  };
}

/** Repeats an attempt until its result is accepted or GAP_WAIT_MS have passed. */
async function untilDeadline<Result>(
  attempt: () => Promise<Result>,
  isAccepted: (result: Result) => boolean,
): Promise<Result> {
  const deadline = performance.now() + GAP_WAIT_MS;
  for (;;) {
    const result = await attempt();
    if (isAccepted(result) || performance.now() > deadline) return result;
    await Bun.sleep(GAP_RETRY_MS);
  }
}

interface Page {
  entries: readonly LogEntry[] | null;
  /** Whether an entry is missing after the last one that is returned. */
  isBlocked: boolean;
}

interface PageQuery {
  after: Cursor;
  limit: number;
  skippedNode: string;
}

async function readPage(unit: Unit, gaps: Gaps, query: PageQuery): Promise<Page> {
  const { after, limit, skippedNode } = query;
  const rows = await unit.all<EntryRow>`
    SELECT id, node, CASE WHEN node = ${skippedNode} THEN '[]' ELSE body END AS body
    FROM changes WHERE id > ${after} ORDER BY id LIMIT ${limit}`;
  if (rows.at(-1)?.id === after + rows.length || rows.length === 0) {
    return { entries: rows.map(entryOf), isBlocked: false };
  }
  const prunedUpTo = await unit.firstNumber`SELECT up_to FROM changes_pruned`;
  if (after < prunedUpTo) return { entries: null, isBlocked: false };
  const settled = await gaps.settledUpTo(unit);
  const blocked = rows.findIndex(
    ({ id }, place) => id - 1 > Math.max(settled, rows[place - 1]?.id ?? after),
  );
  if (blocked === -1) return { entries: rows.map(entryOf), isBlocked: false };
  await gaps.watch(unit, (rows[blocked]?.id ?? after) - 1, rows.at(-1)?.id ?? after);
  return { entries: rows.slice(0, blocked).map(entryOf), isBlocked: true };
}

/** The newest entry, or if an entry before it may still appear, the last one before the gap. */
async function findHead(unit: Unit, gaps: Gaps): Promise<{ cursor: Cursor; isFinal: boolean }> {
  const settled = await gaps.settledUpTo(unit);
  // If the whole log is checked, its first entry follows the pruned ones.
  const row = await unit.get<{ last: number | null; before_gap: number | null }>`
    SELECT max(id) AS last,
      min(previous) FILTER (WHERE id <> previous + 1 AND id - 1 > ${settled}) AS before_gap
    FROM (SELECT id, coalesce(lag(id) OVER (ORDER BY id),
          CASE WHEN count(*) OVER () < ${raw(HEAD_ENTRIES)} THEN
          coalesce((SELECT up_to FROM changes_pruned), 0) ELSE id - 1 END) AS previous
      FROM (SELECT id FROM changes ORDER BY id DESC LIMIT ${raw(HEAD_ENTRIES)}) newest) pairs`;
  const last = row?.last ?? 0;
  if (row?.before_gap == null) return { cursor: last, isFinal: true };
  await gaps.watch(unit, row.before_gap + 1, last);
  return { cursor: row.before_gap, isFinal: false };
}

interface Gaps {
  /** The id up to which no missing entry can still appear, as the unit's snapshot shows. */
  settledUpTo(unit: Unit): Promise<Cursor>;
  /** Remembers which transactions may still commit the missing entry, and others up to a visible one. */
  watch(unit: Unit, missing: Cursor, visible: Cursor): Promise<void>;
}

/**
 * Decides whether a missing id is final, because its transaction rolled back, or may still appear.
 *
 * A writer's transaction has its xid before it takes an id from the sequence. If an entry is
 * visible, the transactions of all smaller ids have therefore been assigned an xid, and an xid that
 * is assigned afterwards is greater than all of theirs. Once a snapshot's xmin has reached that xid
 * they have all ended, and what this snapshot does not show of them was rolled back. (The xmax of a
 * snapshot is not such a bound: it follows the newest transaction that has ended, and a running one
 * may have a greater xid.) Transactions without an xid, such as idle readers, delay nothing.
 */
function openGaps(): Gaps {
  /** Ids up to `upTo` are settled for snapshots whose xmin is at least `xid`. */
  let horizons: { upTo: Cursor; xid: number }[] = [];
  return {
    async settledUpTo(unit) {
      if (horizons.length === 0) return 0;
      const xmin = await unit.firstNumber`
        SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xmin`;
      const reached = horizons.filter(({ xid }) => xid <= xmin);
      const settled = Math.max(0, ...reached.map(({ upTo }) => upTo));
      // The newest one that was reached stays: a later call asks about a snapshot of its own.
      horizons = horizons.filter(({ upTo }) => upTo >= settled);
      return settled;
    },
    async watch(unit, missing, visible) {
      if (horizons.some(({ upTo }) => upTo >= missing)) return;
      const xid = await unit.firstNumber`SELECT pg_current_xact_id()::text::bigint AS xid`;
      horizons.push({ upTo: visible, xid });
    },
  };
}
