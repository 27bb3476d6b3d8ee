import { type AccountRecord, accountAs } from "./account-records.ts";
import type { JsonObject } from "./accounts.ts";
import type { Awaitable } from "./awaitable.ts";
import { json, type Part, reader, type Sql, sql, type Value } from "./sql.ts";

/**
 * Conversations and their members. Methods that take a `conversationId` expect the id of an existing
 * conversation, such as `conversation` returns it.
 */
export const conversationReads = {
  /**
   * The id of the direct conversation of two accounts, of several the one that was inserted last. The
   * order of the two does not matter.
   */
  directConversation: (db: Sql, pair: readonly [number, number]) =>
    db.firstValue<number>`SELECT id FROM conversations WHERE direct_pair = ${pairKey(pair)}`,
  /** The conversations that a product knows by one of these ids, in no particular order. */
  chatsByExternalId: (db: Sql, ids: readonly string[]) =>
    db.all<{ external_id: string; uuid: string }>`
      SELECT external_id, uuid FROM conversations WHERE external_id = ANY(${ids}::text[])`,
  /** All members, in the order in which they joined. */
  members: (db: Sql, conversationId: number) =>
    db.allAs(readMember)`
      SELECT ${accountAs("account")}, m.always_on, ${SHOWN_READ_SEQ} FROM members m
      JOIN accounts a ON a.id = m.account_id
      WHERE m.conversation_id = ${conversationId} ORDER BY m.position`,
  /** The subset of these usernames that are members, in the given order. */
  participantsAmong: (db: Sql, conversationId: number, usernames: readonly string[]) =>
    // CROSS JOIN keeps SQLite from beginning with all members.
    db.column<string>`
      SELECT a.username FROM unnest(${usernames}::text[]) WITH ORDINALITY AS j (username, place)
      CROSS JOIN accounts a CROSS JOIN members m
      WHERE a.username = j.username AND m.conversation_id = ${conversationId}
        AND m.account_id = a.id
      ORDER BY j.place`,
  /** The conversations that an account is a member of, with their counters. */
  counters: (db: Sql, accountId: number) =>
    db.all<{ uuid: string; seq: number }>`
      SELECT c.uuid, k.seq FROM members m JOIN conversations c ON c.id = m.conversation_id
      JOIN counters k ON k.conversation_id = m.conversation_id WHERE m.account_id = ${accountId}`,
  /** The conversations that an account is a former member of, with their counters. */
  formerConversations: (db: Sql, accountId: number) =>
    db.all<{ id: number; seq: number }>`
      SELECT f.conversation_id AS id, k.seq FROM former_members f
      JOIN counters k ON k.conversation_id = f.conversation_id WHERE f.account_id = ${accountId}`,
};

/** The counter stays as it is: `changeGroup` counts what happens to a group. */
export const conversationWrites = {
  /**
   * Inserts a conversation without members and returns its id. The creator of a group is its admin.
   * The uuid must be new, and so must the external id, and the pair of a direct conversation unless it
   * was released.
   */
  async insertConversation(db: Sql, conversation: NewConversation): Promise<number> {
    const { uuid, kind, title, created_by, direct, at } = conversation;
    const [row] = await db.changed<{ id: number }>`
      INSERT INTO conversations (uuid, kind, title, direct_pair, created_by, admin_id, created_at,
        external_id, metadata)
      VALUES (${uuid}, ${kind}, ${title}, ${direct ? pairKey(direct) : null}, ${created_by},
        ${kind === "group" ? created_by : null}, ${at}, ${conversation.external_id ?? null},
        ${json(conversation.metadata)}) RETURNING id`;
    if (!row) throw new Error("a conversation was not inserted");
    await db.insert("counters", { conversation_id: row.id, updated_at: at });
    await db.own(row.id);
    return row.id;
  },
  /**
   * Makes `directConversation` not find this conversation any more, so that another one of the same
   * pair can be inserted. The unit owns the conversation then. It must have locked one of the two
   * accounts before it called `directConversation`: otherwise units that do so at the same time
   * conflict.
   */
  async releasePair(db: Sql, conversationId: number): Promise<void> {
    await db.own(conversationId);
    await db.update("conversations", { id: conversationId }, { direct_pair: null });
  },
  /** Adds members in this order; they have read everything so far. None of them may be a member yet. */
  async insertMembers(db: Sql, conversationId: number, accountIds: readonly number[], at: number) {
    db.changes(conversationId);
    await Promise.all([
      db.change`
        INSERT INTO members (conversation_id, account_id, position, joined_at, last_read_seq,
          read_humans, read_agents)
        SELECT k.conversation_id, j.id, j.place + coalesce((SELECT max(position) FROM members
            WHERE conversation_id = ${conversationId}), 0), ${at}, k.seq, k.humans, k.agents
        FROM unnest(${accountIds}::bigint[]) WITH ORDINALITY AS j (id, place)
        JOIN counters k ON k.conversation_id = ${conversationId}`,
      db.change`
        DELETE FROM former_members
        WHERE conversation_id = ${conversationId} AND account_id = ANY(${accountIds}::bigint[])`,
      countMembers(db, conversationId, accountIds, 1),
    ]);
  },
  /** Makes the members among these accounts former members, until they are inserted again. */
  async deleteMembers(db: Sql, conversationId: number, accountIds: readonly number[]) {
    db.changes(conversationId);
    const rows = await db.changed<{ account_id: number; archived: boolean | number }>`
      DELETE FROM members
      WHERE conversation_id = ${conversationId} AND account_id = ANY(${accountIds}::bigint[])
      RETURNING account_id, archived`;
    const left = rows.map(({ account_id }) => account_id);
    const archived = rows.filter((row) => row.archived).length;
    await Promise.all([
      db.change`
        INSERT INTO former_members (conversation_id, account_id)
        SELECT ${conversationId}, j.id FROM unnest(${left}::bigint[]) AS j (id)
        WHERE true ON CONFLICT DO NOTHING`,
      countMembers(db, conversationId, left, -1, -archived),
    ]);
  },
  /** Sets the admin of a group; null if it has none any more. */
  setAdmin: (db: Sql, conversationId: number, accountId: number | null) =>
    change(db, conversationId, { admin_id: accountId }),
  /** Replaces what the product stores with the conversation. */
  setChatMetadata: (db: Sql, conversationId: number, metadata: JsonObject) =>
    change(db, conversationId, { metadata: json(metadata) }),
  setTitle: (db: Sql, conversationId: number, title: string) =>
    change(db, conversationId, { title }),
  /** Marks a conversation as one that nobody can write to. */
  closeConversation: (db: Sql, conversationId: number, at: number) =>
    change(db, conversationId, { closed_at: at }),
};

/** Each dialect has its own form in `hot/`: most units begin with it. */
export interface HotConversationReads {
  /**
   * The conversation, and whether the viewer is a member of it. A write unit owns the conversation from
   * then on.
   */
  conversation(uuid: string, viewerId: number): Awaitable<ConversationRecord | null>;
}

/** Each dialect has its own form in `hot/`: SQLite needs a third of the time for several statements. */
export interface HotConversationWrites {
  /**
   * Moves a member's read position forward. Returns null, and changes nothing, when it is at `seq`
   * or beyond, and for an account that is not a member. What it sets is explained at `unreadCount`.
   */
  markRead(conversationId: number, accountId: number, seq: number): Awaitable<ReadMove | null>;
}

/** A read position before it moved. */
export interface ReadMove {
  readonly last_read_seq: number;
  /** The position that others are shown, where it is another one: after `markUnread` a higher one. */
  readonly shown_read_seq: number | null;
}

/**
 * The totals of a member's read position: those of the latest message up to it, and the later messages
 * that are deleted or hidden.
 */
export const readTotals = (conversationId: number, accountId: number, seq: number) => sql`
  WITH reached AS (
    SELECT coalesce(max(seq), 0) AS seq, coalesce(max(human_n), 0) AS humans,
           coalesce(max(agent_n), 0) AS agents
    FROM (SELECT seq, human_n, agent_n FROM messages
          WHERE conversation_id = ${conversationId} AND seq <= ${seq} AND deleted_at IS NULL
          ORDER BY seq DESC LIMIT 1) latest
  ), gone AS (
    SELECT count(*) FILTER (WHERE NOT by_agent) AS humans,
           count(*) FILTER (WHERE by_agent) AS agents
    FROM (SELECT m.by_agent FROM messages m
          WHERE m.conversation_id = ${conversationId} AND m.seq > (SELECT seq FROM reached)
            AND m.deleted_at IS NOT NULL AND NOT m.imported
          UNION ALL
          SELECT m.by_agent FROM hidden h CROSS JOIN messages m
          WHERE h.account_id = ${accountId} AND h.conversation_id = ${conversationId}
            AND h.seq > (SELECT seq FROM reached) AND m.conversation_id = h.conversation_id
            AND m.seq = h.seq AND m.deleted_at IS NULL AND NOT m.imported) beyond
  )`;

export interface ConversationRecord {
  readonly id: number;
  readonly uuid: string;
  readonly kind: "direct" | "group";
  readonly title: string | null;
  readonly admin_id: number | null;
  /** Set once nobody can write to it any more. */
  readonly closed_at: number | null;
  /** The file of its picture. */
  readonly picture_id: string | null;
  readonly seq: number;
  readonly participant_count: number;
  readonly agent_count: number;
  /** How many members have archived it. */
  readonly archived_count: number;
  /** Whether the viewer is a member. */
  readonly joined: boolean;
  /** In a direct conversation: whether the viewer blocked the other person, or was blocked by them. */
  readonly block: "own" | "theirs" | null;
}

export interface MemberRecord {
  readonly account: AccountRecord;
  readonly always_on: boolean;
  /** As others are shown it. */
  readonly last_read_seq: number;
}

export interface NewConversation {
  uuid: string;
  kind: "direct" | "group";
  title: string | null;
  created_by: number;
  /** The two accounts of a direct conversation. */
  direct?: readonly [number, number];
  /** Only for groups of a product. */
  external_id?: string;
  metadata?: JsonObject;
  at: number;
}

/** Columns of a `ConversationRecord` that do not depend on the viewer. `k` is the alias of the counters. */
export const CONVERSATION = sql`c.id, c.uuid, c.kind, c.title, c.admin_id, c.closed_at, c.picture_id,
  k.seq, k.participants AS participant_count, k.agent_participants AS agent_count,
  k.archived AS archived_count`;

/** Whether one of the two people of a direct conversation, the viewer or the other, blocked the other. */
export const blockOf = (viewerId: Part) => sql`
  CASE WHEN c.kind <> 'direct' THEN NULL
    WHEN EXISTS (SELECT 1 FROM members o JOIN blocks b ON b.account_id = ${viewerId}
      AND b.blocked_id = o.account_id WHERE o.conversation_id = c.id) THEN 'own'
    WHEN EXISTS (SELECT 1 FROM members o JOIN blocks b ON b.account_id = o.account_id
      AND b.blocked_id = ${viewerId} WHERE o.conversation_id = c.id) THEN 'theirs' END AS block`;

/** Identifies the direct conversation of two accounts. */
const pairKey = ([one, other]: readonly [number, number]) =>
  `${Math.min(one, other)}:${Math.max(one, other)}`;

/** The read position of a member, `m`, that others are shown. */
export const SHOWN_READ_SEQ = sql`coalesce(m.shown_read_seq, m.last_read_seq) AS last_read_seq`;

const readMember = reader<MemberRecord>({ flags: ["always_on"] });

async function change(db: Sql, id: number, columns: Record<string, Value>): Promise<void> {
  db.changes(id);
  await db.update("conversations", { id }, columns);
}

/** Counts accounts that have joined or left, without counting all members. */
const countMembers = (
  db: Sql,
  conversationId: number,
  accountIds: readonly number[],
  by: 1 | -1,
  archived = 0,
) =>
  db.change`
    UPDATE counters SET participants = participants + ${by * accountIds.length},
      agent_participants = agent_participants + ${by} * (SELECT count(*) FROM accounts
        WHERE kind = 'agent' AND id = ANY(${accountIds}::bigint[])),
      archived = archived + ${archived}
    WHERE conversation_id = ${conversationId}`;
