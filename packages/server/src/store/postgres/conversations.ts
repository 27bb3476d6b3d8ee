import type { Account } from "@parley/protocol";
import { type AccountRow, publicAccount } from "../../rules/accounts.ts";
import { NOBODY } from "../accounts.ts";
import type {
  ConversationReads,
  ConversationRecord,
  ConversationWrites,
} from "../conversations.ts";
import { PUBLIC_ACCOUNT } from "../shared/accounts.ts";
import {
  blockOf,
  CONVERSATION,
  CONVERSATION_VIEW,
  COUNTERS,
  type ConversationRow,
  FORMER_CONVERSATIONS,
  MEMBERS,
  type MemberRow,
  pairKey,
  READ_POSITIONS,
  type ReadPositionRow,
  SHOWN_PARTICIPANTS,
  toConversation,
  toConversationDetail,
  toMember,
  toReadPositions,
  toSharedConversation,
  UNREAD_COUNT,
} from "../shared/conversations.ts";
import { latestMessages } from "./message-views.ts";
import { type Batch, list, type Methods, type Unit } from "./unit.ts";

const KNOWN_IDS = 50_000;

/** Caches the row ids of conversations by uuid, which never change. Evicts the oldest entries. */
const knownIds = new Map<string, number>();

async function findId(unit: Unit, uuid: string): Promise<number | null> {
  const row = await unit.get<{ id: number }>("SELECT id FROM conversations WHERE uuid = $1", uuid);
  if (!row) return null;
  knownIds.set(uuid, row.id);
  if (knownIds.size > KNOWN_IDS) knownIds.delete(knownIds.keys().next().value as string);
  return row.id;
}

/** Reads conversations for many units at once: most units begin with it. */
const RECORD: Batch<{ id: number; viewerId: number }, ConversationRecord | null> = {
  sql: `SELECT ${CONVERSATION}, m.account_id IS NOT NULL AS joined, ${blockOf("j.viewer_id")}
    FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS j(id, viewer_id, place)
    LEFT JOIN (conversations c JOIN counters k ON k.conversation_id = c.id) ON c.id = j.id
    LEFT JOIN members m ON m.conversation_id = j.id AND m.account_id = j.viewer_id
    ORDER BY j.place`,
  writes: false,
  values: (calls) => [list(calls.map(({ id }) => id)), list(calls.map((call) => call.viewerId))],
  results: (rows: readonly (ConversationRecord | { id: null })[]) =>
    rows.map((row) => (row.id === null ? null : row)),
};

export const conversationReads: Methods<keyof ConversationReads> = {
  conversation: async (unit, uuid, viewerId) => {
    const id = knownIds.get(uuid) ?? (await findId(unit, uuid));
    if (id === null) return null;
    // Owned first: what is read before may be outdated by the time the unit owns the conversation.
    await unit.own(id);
    return unit.together(RECORD, { id, viewerId });
  },
  directConversation: async (unit, pair) => {
    const row = await unit.get<{ id: number }>(
      "SELECT id FROM conversations WHERE direct_pair = $1",
      pairKey(pair),
    );
    return row?.id ?? null;
  },
  chatsByExternalId: (unit, ids) =>
    unit.all<{ external_id: string; uuid: string }>(
      `SELECT c.external_id, c.uuid FROM jsonb_array_elements_text($1::jsonb) AS j(external_id)
       JOIN conversations c ON c.external_id = j.external_id`,
      ids,
    ),
  members: async (unit, id) => {
    const rows = await unit.all<MemberRow>(MEMBERS, id);
    return rows.map(toMember);
  },
  readPositions: async (unit, id) =>
    toReadPositions(await unit.all<ReadPositionRow>(READ_POSITIONS, id)),
  participantsAmong: async (unit, id, usernames) => {
    const rows = await unit.all<{ username: string }>(
      `SELECT a.username
       FROM jsonb_array_elements_text($2::jsonb) WITH ORDINALITY AS j(username, place)
       JOIN accounts a ON a.username = j.username
       JOIN members m ON m.conversation_id = $1 AND m.account_id = a.id ORDER BY j.place`,
      id,
      usernames,
    );
    return rows.map((row) => row.username);
  },
  counters: (unit, accountId) => unit.all<{ uuid: string; seq: number }>(COUNTERS, accountId),
  formerConversations: (unit, accountId) =>
    unit.all<{ id: number; seq: number }>(FORMER_CONVERSATIONS, accountId),
  unreadCount: async (unit, id, accountId) => {
    const row = await unit.get<{ count: number }>(UNREAD_COUNT, id, accountId);
    return row?.count ?? 0;
  },
  conversationView: async (unit, id, viewerId) => {
    const [row, latest, participants] = await Promise.all([
      viewRow(unit, id, viewerId),
      latestMessages(unit, [id], viewerId),
      shownParticipants(unit, [id]),
    ]);
    return toConversation(row, latest.get(id) ?? null, participants.get(id) ?? []);
  },
  sharedConversation: async (unit, id) => {
    const [row, latest, participants] = await Promise.all([
      viewRow(unit, id, NOBODY),
      latestMessages(unit, [id], NOBODY),
      shownParticipants(unit, [id]),
    ]);
    return toSharedConversation(row, latest.get(id) ?? null, participants.get(id) ?? []);
  },
  conversationDetail: async (unit, id, viewerId) => {
    const [row, latest, members] = await Promise.all([
      viewRow(unit, id, viewerId),
      latestMessages(unit, [id], viewerId),
      conversationReads.members(unit, id),
    ]);
    return toConversationDetail(row, latest.get(id) ?? null, members);
  },
  chats: async (unit, { viewerId, after, limit }) => {
    const rows = await unit.all<ConversationRow>(
      `${CONVERSATION_VIEW} WHERE c.id IN (
         SELECT m.conversation_id FROM members m JOIN counters n ON n.conversation_id = m.conversation_id
         WHERE m.account_id = $1
           AND ($2::bigint IS NULL OR (n.updated_at, n.conversation_id) < ($2, $3::bigint))
         ORDER BY n.updated_at DESC, n.conversation_id DESC LIMIT $4)
       ORDER BY k.updated_at DESC, c.id DESC`,
      viewerId,
      after?.updated_at ?? null,
      after?.id ?? null,
      limit,
    );
    const ids = rows.map((row) => row.id);
    const [latest, participants] = await Promise.all([
      latestMessages(unit, ids, viewerId),
      shownParticipants(unit, ids),
    ]);
    return rows.map((row) =>
      toConversation(row, latest.get(row.id) ?? null, participants.get(row.id) ?? []),
    );
  },
};

async function viewRow(unit: Unit, id: number, viewerId: number): Promise<ConversationRow> {
  const found = await unit.get<ConversationRow>(
    `${CONVERSATION_VIEW} WHERE c.id = $2`,
    viewerId,
    id,
  );
  if (!found) throw new Error(`conversation ${id} is missing`);
  return found;
}

async function shownParticipants(
  unit: Unit,
  ids: readonly number[],
): Promise<Map<number, Account[]>> {
  if (ids.length === 0) return new Map();
  const rows = await unit.all<AccountRow & { conversation_id: number }>(
    `SELECT m.conversation_id, ${PUBLIC_ACCOUNT}
     FROM unnest($1::bigint[]) AS j(id)
     CROSS JOIN LATERAL (SELECT conversation_id, account_id, position FROM members
       WHERE conversation_id = j.id ORDER BY position LIMIT ${SHOWN_PARTICIPANTS}) m
     JOIN accounts a ON a.id = m.account_id ORDER BY m.conversation_id, m.position`,
    list(ids),
  );
  const shown = new Map<number, Account[]>(ids.map((id) => [id, []]));
  for (const row of rows) shown.get(row.conversation_id)?.push(publicAccount(row));
  return shown;
}

export const conversationWrites: Methods<keyof ConversationWrites> = {
  insertConversation: async (unit, conversation) => {
    const { uuid, kind, title, created_by, direct, at } = conversation;
    const [row] = await unit.write<{ id: number }>(
      `WITH made AS (
         INSERT INTO conversations (uuid, kind, title, direct_pair, created_by, admin_id, created_at,
           external_id, metadata)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::jsonb) RETURNING id)
       INSERT INTO counters (conversation_id, updated_at)
       SELECT id, $7 FROM made RETURNING conversation_id AS id`,
      uuid,
      kind,
      title,
      direct ? pairKey(direct) : null,
      created_by,
      kind === "group" ? created_by : null,
      at,
      conversation.external_id ?? null,
      conversation.metadata ?? null,
    );
    if (!row) throw new Error("a conversation was not inserted");
    await unit.own(row.id);
    return row.id;
  },
  releasePair: async (unit, id) => {
    await unit.own(id);
    await unit.write("UPDATE conversations SET direct_pair = NULL WHERE id = $1", id);
  },
  insertMembers: async (unit, id, accountIds, at) => {
    await unit.own(id);
    await unit.write(
      `WITH came AS (
         INSERT INTO members (conversation_id, account_id, position, joined_at, last_read_seq,
           read_humans, read_agents)
         SELECT k.conversation_id, j.id, j.place + coalesce(
             (SELECT max(position) FROM members WHERE conversation_id = $1), 0), $3, k.seq,
           k.humans, k.agents
         FROM counters k CROSS JOIN unnest($2::bigint[]) WITH ORDINALITY AS j(id, place)
         WHERE k.conversation_id = $1 RETURNING account_id),
       back AS (
         DELETE FROM former_members WHERE conversation_id = $1 AND account_id = ANY($2::bigint[]))
       ${changeCounts("+", "came")}`,
      id,
      list(accountIds),
      at,
    );
  },
  deleteMembers: async (unit, id, accountIds) => {
    await unit.own(id);
    await unit.write(
      `WITH gone AS (
         DELETE FROM members WHERE conversation_id = $1 AND account_id = ANY($2::bigint[])
         RETURNING account_id),
       former AS (
         INSERT INTO former_members (conversation_id, account_id)
         SELECT $1::bigint, account_id FROM gone ON CONFLICT DO NOTHING)
       ${changeCounts("-", "gone")}`,
      id,
      list(accountIds),
    );
  },
  setAdmin: async (unit, id, accountId) => {
    await unit.own(id);
    await unit.write("UPDATE conversations SET admin_id = $2 WHERE id = $1", id, accountId);
  },
  setChatMetadata: async (unit, id, metadata) => {
    await unit.own(id);
    await unit.write("UPDATE conversations SET metadata = $2::jsonb WHERE id = $1", id, metadata);
  },
  setTitle: async (unit, id, title) => {
    await unit.own(id);
    await unit.write("UPDATE conversations SET title = $2 WHERE id = $1", id, title);
  },
  closeConversation: async (unit, id, at) => {
    await unit.own(id);
    await unit.write("UPDATE conversations SET closed_at = $2 WHERE id = $1", id, at);
  },
  markRead: async (unit, id, accountId, seq) => {
    await unit.own(id);
    const moved = await unit.write(MARK_READ, id, accountId, seq);
    return moved.count > 0;
  },
};

/** Adds or subtracts those who joined or left, without counting all members. */
const changeCounts = (sign: "+" | "-", moved: string) => `UPDATE counters SET
    participants = participants ${sign} (SELECT count(*) FROM ${moved}),
    agent_participants = agent_participants ${sign} (SELECT count(*) FROM ${moved}
      JOIN accounts a ON a.id = ${moved}.account_id WHERE a.kind = 'agent')
  WHERE conversation_id = $1`;

/** What it sets is explained at `UNREAD_COUNT`. */
const MARK_READ = `WITH reached AS (
    SELECT coalesce(max(seq), 0) AS seq, coalesce(max(human_n), 0) AS humans,
           coalesce(max(agent_n), 0) AS agents
    FROM (SELECT seq, human_n, agent_n FROM messages
          WHERE conversation_id = $1 AND seq <= $3 AND deleted_at IS NULL
          ORDER BY seq DESC LIMIT 1) latest
  ), gone AS (
    SELECT count(*) FILTER (WHERE NOT by_agent) AS humans, count(*) FILTER (WHERE by_agent) AS agents
    FROM (SELECT m.by_agent FROM messages m
          WHERE m.conversation_id = $1 AND m.seq > (SELECT seq FROM reached)
            AND m.deleted_at IS NOT NULL AND NOT m.imported
          UNION ALL
          SELECT m.by_agent FROM hidden h JOIN messages m
            ON m.conversation_id = h.conversation_id AND m.seq = h.seq AND m.deleted_at IS NULL
          WHERE h.account_id = $2 AND h.conversation_id = $1
            AND h.seq > (SELECT seq FROM reached) AND NOT m.imported) beyond
  )
  UPDATE members SET last_read_seq = $3, read_humans = reached.humans + gone.humans,
    read_agents = reached.agents + gone.agents,
    unread_mentions = (SELECT count(*) FROM mentions
      WHERE account_id = $2 AND conversation_id = $1 AND seq > $3)
  FROM reached CROSS JOIN gone
  WHERE members.conversation_id = $1 AND members.account_id = $2 AND members.last_read_seq < $3`;
