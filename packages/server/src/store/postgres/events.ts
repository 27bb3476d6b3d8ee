import type { Change } from "../../changes/change.ts";
import type { ChangedSeat } from "../store.ts";
import type { Connection } from "./connection.ts";
import { conversationId } from "./conversations.ts";
import { list, NOW, type Unit } from "./unit.ts";

/** The same clock, as one moment for the whole of a statement, so that an index can be asked. */
const MOMENT = "(extract(epoch FROM statement_timestamp()) * 1000)::bigint";
/** Nodes that were away for longer have their clients fetch what they missed. */
const KEPT_MS = 10 * 60_000;
/** More than this is not handed out one by one either. */
const MOST = 1000;
const MOST_UNCOUNTED = 10_000;
const FORGOTTEN_AT_ONCE = 5000;

/** Stores what a transaction tells of its changes, as the last of it. */
export async function recordEvents(
  connection: Connection,
  changes: readonly Change[],
): Promise<void> {
  await Promise.all([recordCounted(connection, changes), recordUncounted(connection, changes)]);
}

async function recordCounted(connection: Connection, changes: readonly Change[]): Promise<void> {
  const events = changes.flatMap((change) => {
    if (change.kind !== "event" || change.delivery !== "counted" || !change.at) return [];
    const { conversation_id, seq } = change.at;
    return [{ uuid: conversation_id, seq, announcement: JSON.stringify(change) }];
  });
  if (events.length === 0) return;
  await connection.run(
    `INSERT INTO events (conversation_id, seq, at, announcement)
     SELECT c.id, g.seq, ${NOW}, g.announcement
     FROM jsonb_to_recordset($1::jsonb) AS g (uuid uuid, seq bigint, announcement text)
     JOIN conversations c ON c.uuid = g.uuid`,
    [events],
  );
}

async function recordUncounted(connection: Connection, changes: readonly Change[]): Promise<void> {
  const events = changes.filter((each) => each.kind === "event" && each.delivery === "durable");
  if (events.length === 0) return;
  await connection.run(
    `INSERT INTO uncounted (at, announcement)
     SELECT ${NOW}, g.announcement FROM jsonb_array_elements_text($1::jsonb) AS g (announcement)`,
    [events.map((event) => JSON.stringify(event))],
  );
}

/** Null when not every one of them is there. */
export async function uncountedSince(unit: Unit, since: number): Promise<readonly Change[] | null> {
  const rows = await unit.all<{ announcement: string }>(
    `SELECT announcement FROM uncounted WHERE at >= ${MOMENT} - $1::bigint
     ORDER BY id LIMIT ${MOST_UNCOUNTED + 1}`,
    ago(since),
  );
  if (since < Date.now() - KEPT_MS || rows.length > MOST_UNCOUNTED) return null;
  return rows.map(({ announcement }) => JSON.parse(announcement) as Change);
}

/** Null when not every one of them is there. */
export async function eventsSince(
  unit: Unit,
  uuid: string,
  seq: number,
): Promise<readonly Change[] | null> {
  const id = await conversationId(unit, uuid);
  if (id === null) return [];
  const [counter, rows] = await Promise.all([
    unit.get<{ seq: number }>("SELECT seq FROM counters WHERE conversation_id = $1", id),
    unit.all<{ announcement: string }>(
      `SELECT announcement FROM events WHERE conversation_id = $1 AND seq > $2
       ORDER BY seq LIMIT ${MOST + 1}`,
      id,
      seq,
    ),
  ]);
  if (rows.length !== Math.max(0, (counter?.seq ?? 0) - seq)) return null;
  return rows.map(({ announcement }) => JSON.parse(announcement) as Change);
}

/** Times are of the database's clock; a node that asks knows how long ago it was by its own. */
const ago = (since: number) => Date.now() - since;

export const changedSince = (unit: Unit, accountIds: readonly number[], since: number) =>
  unit.all<ChangedSeat>(
    `SELECT s.account_id, c.uuid AS conversation, k.seq, s.left FROM (
       SELECT account_id, conversation_id, false AS left FROM members
       WHERE account_id = ANY($1::bigint[])
       UNION ALL
       SELECT account_id, conversation_id, true FROM departures
       WHERE account_id = ANY($1::bigint[]) AND at >= ${MOMENT} - $2::bigint) s
     JOIN counters k ON k.conversation_id = s.conversation_id AND k.changed_at >= ${MOMENT} - $2::bigint
     JOIN conversations c ON c.id = s.conversation_id`,
    list(accountIds),
    ago(since),
  );

export const changedConversations = (unit: Unit, since: number) =>
  unit.all<{ uuid: string; seq: number }>(
    `SELECT c.uuid, max(e.seq) AS seq FROM events e JOIN conversations c ON c.id = e.conversation_id
     WHERE e.at >= ${MOMENT} - $1::bigint GROUP BY c.uuid`,
    ago(since),
  );

export async function endedSessions(unit: Unit, ids: readonly string[]): Promise<string[]> {
  const rows = await unit.all<{ id: string }>(
    `SELECT j.id FROM unnest($1::uuid[]) AS j(id) LEFT JOIN sessions s ON s.id = j.id
     WHERE s.id IS NULL OR s.ended_at IS NOT NULL`,
    list(ids),
  );
  return rows.map((row) => row.id);
}

/** Drops what nobody can need any more; whether some is left. */
export async function forgetEvents(unit: Unit): Promise<boolean> {
  const { count } = await unit.change(
    `DELETE FROM events WHERE (conversation_id, seq) IN (
       SELECT conversation_id, seq FROM events WHERE at < ${MOMENT} - $1::bigint LIMIT ${FORGOTTEN_AT_ONCE})`,
    KEPT_MS,
  );
  await unit.change(`DELETE FROM departures WHERE at < ${MOMENT} - $1::bigint`, KEPT_MS);
  await unit.change(`DELETE FROM uncounted WHERE at < ${MOMENT} - $1::bigint`, KEPT_MS);
  return count === FORGOTTEN_AT_ONCE;
}
