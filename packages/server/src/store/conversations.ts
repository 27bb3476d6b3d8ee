import type {
  Account,
  Conversation,
  ConversationDetail,
  Message,
  SharedConversation,
} from "@parley/protocol";
import { type AccountRow, publicAccount } from "../rules/accounts.ts";
import { excerptOf } from "../rules/excerpt.ts";
import { iso } from "../rules/time.ts";
import { type AccountRecord, type JsonObject, NOBODY } from "./accounts.ts";
import type { Awaitable } from "./awaitable.ts";
import { SHOWN_PARTICIPANTS } from "./group-changes.ts";
import { latestMessages } from "./message-views.ts";
import { LAST_SEQ } from "./messages.ts";
import {
  ACCOUNT,
  accountOf,
  type JoinedAccount,
  joinedAccount,
  PUBLIC_ACCOUNT,
} from "./shared/accounts.ts";
import { decoded } from "./shared/json.ts";
import type { Sql, Value } from "./sql.ts";

/**
 * Conversations and their members. Methods that take a `conversationId` expect the id of an existing
 * conversation, such as `conversation` returns it; views of one that does not exist throw.
 */
export const conversationReads = {
  /**
   * The id of the direct conversation of two accounts, of several the one that was inserted last. The
   * order of the two does not matter.
   */
  async directConversation(db: Sql, pair: readonly [number, number]): Promise<number | null> {
    const row = await db.get<{ id: number }>(
      "SELECT id FROM conversations WHERE direct_pair = $1",
      pairKey(pair),
    );
    return row?.id ?? null;
  },
  /** The conversations that a product knows by one of these ids, in no particular order. */
  chatsByExternalId: (db: Sql, ids: readonly string[]) =>
    db.all<{ external_id: string; uuid: string }>(
      "SELECT external_id, uuid FROM conversations WHERE external_id = ANY($1::text[])",
      db.list(ids),
    ),
  /** All members, in the order in which they joined. */
  async members(db: Sql, conversationId: number): Promise<MemberRecord[]> {
    const rows = await db.all<MemberRow>(MEMBERS, conversationId);
    return rows.map(toMember);
  },
  /** How far people have read, by username, for the first members: those that lists show. */
  async readPositions(db: Sql, conversationId: number): Promise<Record<string, number>> {
    const rows = await db.all<ReadPositionRow>(
      `SELECT a.username, a.kind, m.last_read_seq FROM members m
       JOIN accounts a ON a.id = m.account_id
       WHERE m.conversation_id = $1 ORDER BY m.position LIMIT ${SHOWN_PARTICIPANTS}`,
      conversationId,
    );
    return toReadPositions(rows);
  },
  /** The subset of these usernames that are members, in the given order. */
  async participantsAmong(
    db: Sql,
    conversationId: number,
    usernames: readonly string[],
  ): Promise<string[]> {
    const rows = await db.all<{ username: string }>(
      PARTICIPANTS_AMONG,
      conversationId,
      db.list(usernames),
    );
    return rows.map((row) => row.username);
  },
  /** The conversations that an account is a member of, with their counters. */
  counters: (db: Sql, accountId: number) =>
    db.all<{ uuid: string; seq: number }>(
      `SELECT c.uuid, k.seq FROM members m JOIN conversations c ON c.id = m.conversation_id
       JOIN counters k ON k.conversation_id = m.conversation_id WHERE m.account_id = $1`,
      accountId,
    ),
  /** The conversations that an account is a former member of, with their counters. */
  formerConversations: (db: Sql, accountId: number) =>
    db.all<{ id: number; seq: number }>(
      `SELECT f.conversation_id AS id, k.seq FROM former_members f
       JOIN counters k ON k.conversation_id = f.conversation_id WHERE f.account_id = $1`,
      accountId,
    ),
  /** The conversation as lists show it to the viewer, who is a member. */
  async conversationView(db: Sql, conversationId: number, viewerId: number): Promise<Conversation> {
    const [row, shown] = await Promise.all([
      viewRow(db, conversationId, viewerId),
      shownIn(db, [conversationId], viewerId),
    ]);
    return toConversation(row, shown(row.id));
  },
  /** The same with all participants, and how far each person has read. */
  async conversationDetail(
    db: Sql,
    conversationId: number,
    viewerId: number,
  ): Promise<ConversationDetail> {
    const [row, latest, members] = await Promise.all([
      viewRow(db, conversationId, viewerId),
      latestMessages(db, [conversationId], viewerId),
      conversationReads.members(db, conversationId),
    ]);
    const participants = members.map(({ account }) => publicAccount(account));
    const positions = members.map(({ account, last_read_seq }) => ({ ...account, last_read_seq }));
    return {
      ...toConversation(row, { latest: latest.get(conversationId), participants }),
      reads: toReadPositions(positions),
    };
  },
  /** The conversation without anything that differs between viewers, for events. */
  async sharedConversation(db: Sql, conversationId: number): Promise<SharedConversation> {
    const [row, shown] = await Promise.all([
      viewRow(db, conversationId, NOBODY),
      shownIn(db, [conversationId], NOBODY),
    ]);
    return toSharedConversation(row, shown(row.id));
  },
  /** The viewer's conversations, most recently updated first. */
  async chats(db: Sql, { viewerId, after, limit }: ChatsQuery): Promise<Conversation[]> {
    const rows = await db.all<ConversationRow>(
      CHATS,
      viewerId,
      after?.updated_at ?? null,
      after?.id ?? null,
      limit,
    );
    const ids = rows.map(({ id }) => id);
    const shown = await shownIn(db, ids, viewerId);
    return rows.map((row) => toConversation(row, shown(row.id)));
  },
  /**
   * How many messages a member has not read. Zero for an account that is not a member.
   *
   * An unread count is the conversation's total of messages minus the member's total of read ones, so
   * its cost does not depend on the number of messages. `markRead` sets the member's total: the running
   * total of the latest message up to the new read position, plus the later messages that are deleted or
   * hidden, which count as read. Messages of blocked people are subtracted when the count is read.
   */
  async unreadCount(db: Sql, conversationId: number, accountId: number): Promise<number> {
    const row = await db.get<{ count: number }>(UNREAD_COUNT, conversationId, accountId);
    return row?.count ?? 0;
  },
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
    const [row] = await db.changed<{ id: number }>(
      `INSERT INTO conversations (uuid, kind, title, direct_pair, created_by, admin_id, created_at,
         external_id, metadata)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING id`,
      uuid,
      kind,
      title,
      direct ? pairKey(direct) : null,
      created_by,
      kind === "group" ? created_by : null,
      at,
      conversation.external_id ?? null,
      db.json(conversation.metadata),
    );
    if (!row) throw new Error("a conversation was not inserted");
    await db.change(
      "INSERT INTO counters (conversation_id, updated_at) VALUES ($1, $2)",
      row.id,
      at,
    );
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
    await db.change("UPDATE conversations SET direct_pair = NULL WHERE id = $1", conversationId);
  },
  /** Adds members in this order; they have read everything so far. None of them may be a member yet. */
  async insertMembers(
    db: Sql,
    conversationId: number,
    accountIds: readonly number[],
    at: number,
  ): Promise<void> {
    db.changes(conversationId);
    const joined = db.list(accountIds);
    await Promise.all([
      db.change(
        `INSERT INTO members (conversation_id, account_id, position, joined_at, last_read_seq,
           read_humans, read_agents)
         SELECT k.conversation_id, j.id, j.place + coalesce(
             (SELECT max(position) FROM members WHERE conversation_id = $1), 0), $3, k.seq,
           k.humans, k.agents
         FROM unnest($2::bigint[]) WITH ORDINALITY AS j (id, place)
         JOIN counters k ON k.conversation_id = $1`,
        conversationId,
        joined,
        at,
      ),
      db.change(
        "DELETE FROM former_members WHERE conversation_id = $1 AND account_id = ANY($2::bigint[])",
        conversationId,
        joined,
      ),
      countMembers(db, conversationId, accountIds, 1),
    ]);
  },
  /** Makes the members among these accounts former members, until they are inserted again. */
  async deleteMembers(
    db: Sql,
    conversationId: number,
    accountIds: readonly number[],
  ): Promise<void> {
    db.changes(conversationId);
    const rows = await db.changed<{ account_id: number }>(
      `DELETE FROM members WHERE conversation_id = $1 AND account_id = ANY($2::bigint[])
       RETURNING account_id`,
      conversationId,
      db.list(accountIds),
    );
    const left = rows.map(({ account_id }) => account_id);
    await Promise.all([
      db.change(
        `INSERT INTO former_members (conversation_id, account_id)
         SELECT $1, j.id FROM unnest($2::bigint[]) AS j (id) WHERE true ON CONFLICT DO NOTHING`,
        conversationId,
        db.list(left),
      ),
      countMembers(db, conversationId, left, -1),
    ]);
  },
  /** Sets the admin of a group; null if it has none any more. */
  setAdmin: (db: Sql, conversationId: number, accountId: number | null) =>
    update(db, conversationId, "UPDATE conversations SET admin_id = $2 WHERE id = $1", accountId),
  /** Replaces what the product stores with the conversation. */
  setChatMetadata: (db: Sql, conversationId: number, metadata: JsonObject) =>
    update(
      db,
      conversationId,
      "UPDATE conversations SET metadata = $2 WHERE id = $1",
      db.json(metadata),
    ),
  setTitle: (db: Sql, conversationId: number, title: string) =>
    update(db, conversationId, "UPDATE conversations SET title = $2 WHERE id = $1", title),
  /** Marks a conversation as one that nobody can write to. */
  closeConversation: (db: Sql, conversationId: number, at: number) =>
    update(db, conversationId, "UPDATE conversations SET closed_at = $2 WHERE id = $1", at),
  /**
   * Moves a member's read position forward. Returns false, and changes nothing, when it is at `seq`
   * or beyond, and for an account that is not a member. What it sets is explained at `unreadCount`.
   */
  async markRead(
    db: Sql,
    conversationId: number,
    accountId: number,
    seq: number,
  ): Promise<boolean> {
    db.changes(conversationId);
    return (await db.change(MARK_READ, conversationId, accountId, seq)) > 0;
  },
};

/** Each dialect has its own form in `hot/`: most units begin with it. */
export interface HotConversationReads {
  /**
   * The conversation, and whether the viewer is a member of it. A write unit owns the conversation from
   * then on.
   */
  conversation(uuid: string, viewerId: number): Awaitable<ConversationRecord | null>;
}

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
  /** Whether the viewer is a member. */
  readonly joined: boolean;
  /** In a direct conversation: whether the viewer blocked the other person, or was blocked by them. */
  readonly block: "own" | "theirs" | null;
}

export interface MemberRecord {
  readonly account: AccountRecord;
  readonly always_on: boolean;
  readonly last_read_seq: number;
}

export interface ChatsQuery {
  viewerId: number;
  /** Return only conversations after this position of the list. */
  after?: { updated_at: number; id: number } | undefined;
  limit: number;
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
export const CONVERSATION = `c.id, c.uuid, c.kind, c.title, c.admin_id, c.closed_at, c.picture_id,
  k.seq, k.participants AS participant_count, k.agent_participants AS agent_count`;

/** Whether one of the two people of a direct conversation, the viewer or the other, blocked the other. */
export const blockOf = (viewer: string) =>
  `CASE WHEN c.kind <> 'direct' THEN NULL
     WHEN EXISTS (SELECT 1 FROM members o JOIN blocks b ON b.account_id = ${viewer}
       AND b.blocked_id = o.account_id WHERE o.conversation_id = c.id) THEN 'own'
     WHEN EXISTS (SELECT 1 FROM members o JOIN blocks b ON b.account_id = o.account_id
       AND b.blocked_id = ${viewer} WHERE o.conversation_id = c.id) THEN 'theirs' END AS block`;

/** Identifies the direct conversation of two accounts. */
const pairKey = ([one, other]: readonly [number, number]) =>
  `${Math.min(one, other)}:${Math.max(one, other)}`;

const MEMBERS = `SELECT ${ACCOUNT}, m.always_on, m.last_read_seq FROM members m
  JOIN accounts a ON a.id = m.account_id WHERE m.conversation_id = $1 ORDER BY m.position`;

type MemberRow = AccountRecord & { always_on: boolean | number; last_read_seq: number };

const toMember = (row: MemberRow): MemberRecord => ({
  account: accountOf(row),
  always_on: Boolean(row.always_on),
  last_read_seq: row.last_read_seq,
});

/** `CROSS JOIN` keeps SQLite from beginning with all members. */
const PARTICIPANTS_AMONG = `SELECT a.username
  FROM unnest($2::text[]) WITH ORDINALITY AS j (username, place)
  CROSS JOIN accounts a CROSS JOIN members m
  WHERE a.username = j.username AND m.conversation_id = $1 AND m.account_id = a.id
  ORDER BY j.place`;

type ReadPositionRow = Pick<Account, "username" | "kind"> & { last_read_seq: number };

const toReadPositions = (members: readonly ReadPositionRow[]): Record<string, number> =>
  Object.fromEntries(
    members
      .filter(({ kind }) => kind === "human")
      .map(({ username, last_read_seq }) => [username, last_read_seq]),
  );

/** Only the newest unread messages are searched for those of blocked people: this bounds the cost. */
const MAX_SEARCHED_UNREAD = 1000;

/**
 * How many of a member's unread messages that satisfy a condition are of people whom the member blocked,
 * or of their agents. `member` is the alias of the membership, `n` that of a message.
 */
const ofBlocked = (member: string, condition: string) =>
  `CASE WHEN EXISTS (SELECT 1 FROM blocks WHERE account_id = ${member}.account_id) THEN (
    SELECT count(*) FROM (
      SELECT u.seq, u.sender_id, u.by_agent FROM messages u
      WHERE u.conversation_id = ${member}.conversation_id AND u.seq > ${member}.last_read_seq
        AND u.deleted_at IS NULL AND NOT u.imported
      ORDER BY u.seq DESC LIMIT ${MAX_SEARCHED_UNREAD}) n
    JOIN accounts s ON s.id = n.sender_id
    WHERE ${condition} AND EXISTS (SELECT 1 FROM blocks b
        WHERE b.account_id = ${member}.account_id AND b.blocked_id IN (s.id, s.owner_id))
      AND NOT EXISTS (SELECT 1 FROM hidden h WHERE h.account_id = ${member}.account_id
        AND h.conversation_id = ${member}.conversation_id AND h.seq = n.seq)) ELSE 0 END`;

const UNREAD_COUNT = `SELECT k.humans - m.read_humans + k.agents - m.read_agents
    - ${ofBlocked("m", "true")} AS count
  FROM members m JOIN counters k ON k.conversation_id = m.conversation_id
  WHERE m.conversation_id = $1 AND m.account_id = $2`;

const MENTIONS_MEMBER = `EXISTS (SELECT 1 FROM mentions e WHERE e.account_id = me.account_id
  AND e.conversation_id = me.conversation_id AND e.seq = n.seq)`;

const creator = joinedAccount("creator");

/** Selects `ConversationRow`s for the viewer, parameter 1. */
const CONVERSATION_VIEW = `SELECT c.id, c.uuid, c.kind, c.title, c.created_at, c.picture_id, c.external_id,
    c.metadata, k.seq, k.updated_at,
    k.participants AS participant_count, admin.username AS admin, ${creator.columns},
    k.humans - me.read_humans - ${ofBlocked("me", "NOT n.by_agent")} AS unread_humans,
    k.agents - me.read_agents - ${ofBlocked("me", "n.by_agent")} AS unread_agents,
    me.unread_mentions - ${ofBlocked("me", MENTIONS_MEMBER)} AS unread_mentions, me.last_read_seq,
    (SELECT own_seq FROM accounts WHERE id = $1) AS own_seq
  FROM conversations c
  JOIN counters k ON k.conversation_id = c.id
  JOIN accounts creator ON creator.id = c.created_by
  LEFT JOIN accounts admin ON admin.id = c.admin_id
  LEFT JOIN members me ON me.conversation_id = c.id AND me.account_id = $1`;

const ONE_CONVERSATION = `${CONVERSATION_VIEW} WHERE c.id = $2`;

const CHATS = `${CONVERSATION_VIEW} WHERE c.id IN (
    SELECT m.conversation_id FROM members m JOIN counters o ON o.conversation_id = m.conversation_id
    WHERE m.account_id = $1
      AND ($2::bigint IS NULL OR (o.updated_at, o.conversation_id) < ($2, $3::bigint))
    ORDER BY o.updated_at DESC, o.conversation_id DESC LIMIT $4)
  ORDER BY k.updated_at DESC, c.id DESC`;

/** Columns after `admin` belong to the viewer's membership. */
interface ConversationRow extends JoinedAccount<"creator"> {
  id: number;
  uuid: string;
  kind: "direct" | "group";
  title: string | null;
  picture_id: string | null;
  external_id: string | null;
  metadata: string | JsonObject | null;
  created_at: number;
  updated_at: number;
  seq: number;
  participant_count: number;
  admin: string | null;
  unread_humans: number;
  unread_agents: number;
  unread_mentions: number;
  last_read_seq: number;
  own_seq: number;
}

async function viewRow(db: Sql, id: number, viewerId: number): Promise<ConversationRow> {
  const found = await db.get<ConversationRow>(ONE_CONVERSATION, viewerId, id);
  if (!found) throw new Error(`conversation ${id} is missing`);
  return found;
}

/** What a view shows of a conversation's messages and members. */
interface Shown {
  readonly latest: Message | undefined;
  readonly participants: Account[];
}

const toSharedConversation = (
  row: ConversationRow,
  { latest, participants }: Shown,
): SharedConversation => ({
  id: row.uuid,
  kind: row.kind,
  title: row.title,
  participants,
  created_by: publicAccount(creator.of(row)),
  admin: row.admin,
  created_at: iso(row.created_at),
  updated_at: iso(row.updated_at),
  seq: row.seq,
  last_message: latest ? excerptOf(latest) : null,
  participant_count: row.participant_count,
  picture_id: row.picture_id,
  ...(row.external_id !== null && {
    external_id: row.external_id,
    metadata: decoded(row.metadata) ?? {},
  }),
});

const toConversation = (row: ConversationRow, shown: Shown): Conversation => ({
  ...toSharedConversation(row, shown),
  unread_count: row.unread_humans + row.unread_agents,
  unread: {
    human: row.unread_humans,
    agent: row.unread_agents,
    mentions: row.unread_mentions,
  },
  last_read_seq: row.last_read_seq,
  own_seq: row.own_seq,
});

/** The latest messages that the viewer can see, and the participants that lists show. */
async function shownIn(
  db: Sql,
  ids: readonly number[],
  viewerId: number,
): Promise<(id: number) => Shown> {
  const [latest, rows] = await Promise.all([
    latestMessages(db, ids, viewerId),
    db.all<AccountRow & { conversation_id: number }>(SHOWN_MEMBERS, db.list(ids), LAST_SEQ),
  ]);
  const members = Map.groupBy(rows, (row) => row.conversation_id);
  return (id) => ({
    latest: latest.get(id),
    participants: (members.get(id) ?? []).map(publicAccount),
  });
}

/** The first members of conversations. Parameter 2 is larger than any position. */
const SHOWN_MEMBERS = `SELECT m.conversation_id, ${PUBLIC_ACCOUNT}
  FROM unnest($1::bigint[]) AS j (id) JOIN members m ON m.conversation_id = j.id
    AND m.position <= coalesce((SELECT o.position FROM members o WHERE o.conversation_id = j.id
      ORDER BY o.position LIMIT 1 OFFSET ${SHOWN_PARTICIPANTS - 1}), $2)
  JOIN accounts a ON a.id = m.account_id ORDER BY m.conversation_id, m.position`;

async function update(db: Sql, conversationId: number, sql: string, value: Value): Promise<void> {
  db.changes(conversationId);
  await db.change(sql, conversationId, value);
}

/** Counts accounts that have joined or left, without counting all members. */
const countMembers = (db: Sql, conversationId: number, accountIds: readonly number[], by: 1 | -1) =>
  db.change(
    `UPDATE counters SET participants = participants + $2, agent_participants = agent_participants
       + $3 * (SELECT count(*) FROM accounts WHERE kind = 'agent' AND id = ANY($4::bigint[]))
     WHERE conversation_id = $1`,
    conversationId,
    by * accountIds.length,
    by,
    db.list(accountIds),
  );

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
          SELECT m.by_agent FROM hidden h CROSS JOIN messages m
          WHERE h.account_id = $2 AND h.conversation_id = $1
            AND h.seq > (SELECT seq FROM reached) AND m.conversation_id = h.conversation_id
            AND m.seq = h.seq AND m.deleted_at IS NULL AND NOT m.imported) beyond
  )
  UPDATE members SET last_read_seq = $3, read_humans = reached.humans + gone.humans,
    read_agents = reached.agents + gone.agents,
    unread_mentions = (SELECT count(*) FROM mentions
      WHERE account_id = $2 AND conversation_id = $1 AND seq > $3)
  FROM reached CROSS JOIN gone
  WHERE members.conversation_id = $1 AND members.account_id = $2 AND members.last_read_seq < $3`;
