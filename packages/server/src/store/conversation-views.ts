import type {
  Account,
  Conversation,
  ConversationDetail,
  Message,
  SharedConversation,
} from "@parley/protocol";
import { type AccountRow, NOBODY, publicAccount } from "../rules/accounts.ts";
import { type StoredChatState, shownChatState } from "../rules/chat-states.ts";
import { excerptOf } from "../rules/excerpt.ts";
import { iso } from "../rules/time.ts";
import { PUBLIC_ACCOUNT, publicAccountAs } from "./account-records.ts";
import type { JsonObject } from "./accounts.ts";
import { conversationReads, SHOWN_READ_SEQ } from "./conversations.ts";
import { SHOWN_PARTICIPANTS } from "./group-changes.ts";
import { latestMessages } from "./message-views.ts";
import { LAST_SEQ } from "./messages.ts";
import { type Either, raw, reader, type Sql, sql } from "./sql.ts";

/** Conversations as clients see them. Views of a conversation that does not exist throw. */
export const conversationViewReads = {
  /** How far people have read, by username, for the first members: those that lists show. */
  async readPositions(db: Sql, conversationId: number): Promise<Record<string, number>> {
    const rows = await db.all<ReadPositionRow>`
      SELECT a.username, a.kind, ${SHOWN_READ_SEQ} FROM members m
      JOIN accounts a ON a.id = m.account_id
      WHERE m.conversation_id = ${conversationId} ORDER BY m.position LIMIT ${MOST_SHOWN}`;
    return toReadPositions(rows);
  },
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
  /**
   * The viewer's conversations, most recently updated first, without those that were cleared and have
   * nothing new since.
   */
  async chats(db: Sql, { viewerId, archived, after, limit }: ChatsQuery): Promise<Conversation[]> {
    const isWanted = archived === undefined ? ALL : archived ? ARCHIVED : NOT_ARCHIVED;
    const rows = await db.allAs(readConversation)`
      ${conversationsFor(viewerId)} WHERE c.id IN (
        SELECT m.conversation_id FROM members m
        JOIN counters o ON o.conversation_id = m.conversation_id
        WHERE m.account_id = ${viewerId} AND (NOT m.unlisted OR ${HAS_NEWS}) AND ${isWanted}
          AND (${after?.id ?? null}::bigint IS NULL OR (o.updated_at, o.conversation_id)
            < (${after?.updated_at ?? null}::bigint, ${after?.id ?? null}::bigint))
        ORDER BY o.updated_at DESC, o.conversation_id DESC LIMIT ${limit})
      ORDER BY k.updated_at DESC, c.id DESC`;
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
  unreadCount: (db: Sql, conversationId: number, accountId: number) =>
    db.firstNumber`
      SELECT k.humans - m.read_humans + k.agents - m.read_agents
        - ${ALL_OF_BLOCKED} AS count
      FROM members m JOIN counters k ON k.conversation_id = m.conversation_id
      WHERE m.conversation_id = ${conversationId} AND m.account_id = ${accountId}`,
};

export interface ChatsQuery {
  viewerId: number;
  /** Return only those that the viewer has archived, or only the others. */
  archived?: boolean | undefined;
  /** Return only conversations after this position of the list. */
  after?: { updated_at: number; id: number } | undefined;
  limit: number;
}

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
export const ofBlocked = (member: string, condition: string) =>
  raw(`CASE WHEN EXISTS (SELECT 1 FROM blocks WHERE account_id = ${member}.account_id) THEN (
    SELECT count(*) FROM (
      SELECT u.seq, u.sender_id, u.by_agent FROM messages u
      WHERE u.conversation_id = ${member}.conversation_id AND u.seq > ${member}.last_read_seq
        AND u.deleted_at IS NULL AND NOT u.imported
      ORDER BY u.seq DESC LIMIT ${MAX_SEARCHED_UNREAD}) n
    JOIN accounts s ON s.id = n.sender_id
    WHERE ${condition} AND EXISTS (SELECT 1 FROM blocks b
        WHERE b.account_id = ${member}.account_id AND b.blocked_id IN (s.id, s.owner_id))
      AND NOT EXISTS (SELECT 1 FROM hidden h WHERE h.account_id = ${member}.account_id
        AND h.conversation_id = ${member}.conversation_id AND h.seq = n.seq)) ELSE 0 END`);

const ALL_OF_BLOCKED = ofBlocked("m", "true");
const ALL = sql`true`;
const ARCHIVED = sql`m.archived`;
const NOT_ARCHIVED = sql`NOT m.archived`;

const PEOPLE_OF_BLOCKED = ofBlocked("me", "NOT n.by_agent");
const AGENTS_OF_BLOCKED = ofBlocked("me", "n.by_agent");
export const MENTIONS_OF_BLOCKED = ofBlocked(
  "me",
  `EXISTS (SELECT 1 FROM mentions e WHERE e.account_id = me.account_id
     AND e.conversation_id = me.conversation_id AND e.seq = n.seq)`,
);

/** Columns of a `StoredChatState`; `me` is the alias of the membership. */
export const CHAT_STATE = sql`me.notify, me.muted_until, me.pinned, me.archived, c.kind,
  k.participants - k.agent_participants AS people`;

/** Whether a table has something of a cleared conversation since; `m` is the alias of the membership. */
const hasLater = (table: string, indexed = "true") =>
  raw(`EXISTS (SELECT 1 FROM ${table} later WHERE later.conversation_id = m.conversation_id
    AND later.seq > m.cleared_seq AND ${indexed})`);

/** Tombstones count. Live and deleted messages have an index each. */
export const HAS_NEWS = sql`(${hasLater("messages", "later.deleted_at IS NULL")}
  OR ${hasLater("messages", "later.deleted_at IS NOT NULL")} OR ${hasLater("conversation_changes")})`;

/** Selects `ConversationRow`s. */
const conversationsFor = (viewerId: number) => sql`
  SELECT c.id, c.uuid, c.title, c.created_at, c.picture_id, c.external_id, c.metadata, k.seq,
    k.updated_at, k.participants AS participant_count, admin.username AS admin, ${CREATOR},
    k.humans - me.read_humans - ${PEOPLE_OF_BLOCKED} AS "unread.human",
    k.agents - me.read_agents - ${AGENTS_OF_BLOCKED} AS "unread.agent",
    me.unread_mentions - ${MENTIONS_OF_BLOCKED} AS "unread.mentions", me.last_read_seq,
    me.cleared_seq, ${CHAT_STATE}, viewer.own_seq, viewer.kind AS viewer_kind
  FROM conversations c
  JOIN counters k ON k.conversation_id = c.id
  JOIN accounts creator ON creator.id = c.created_by
  LEFT JOIN accounts admin ON admin.id = c.admin_id
  LEFT JOIN accounts viewer ON viewer.id = ${viewerId}
  LEFT JOIN members me ON me.conversation_id = c.id AND me.account_id = ${viewerId}`;

const CREATOR = publicAccountAs("created_by", "creator");

/** The last fields belong to the viewer's membership. */
type ConversationRow = Pick<
  Conversation,
  "kind" | "title" | "picture_id" | "seq" | "participant_count" | "admin"
> & {
  id: number;
  uuid: string;
  external_id: string | null;
  metadata: JsonObject | null;
  created_at: number;
  updated_at: number;
  created_by: AccountRow;
  viewer_kind: Account["kind"];
} & Pick<Conversation, "unread" | "last_read_seq" | "own_seq" | "cleared_seq"> &
  StoredChatState;

const readConversation = reader<ConversationRow>({ json: ["metadata"] });

async function viewRow(db: Sql, id: number, viewerId: number): Promise<ConversationRow> {
  const found = await db.getAs(readConversation)`${conversationsFor(viewerId)} WHERE c.id = ${id}`;
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
  created_by: publicAccount(row.created_by),
  admin: row.admin,
  created_at: iso(row.created_at),
  updated_at: iso(row.updated_at),
  seq: row.seq,
  last_message: latest ? excerptOf(latest) : null,
  participant_count: row.participant_count,
  picture_id: row.picture_id,
  ...(row.external_id !== null && {
    external_id: row.external_id,
    metadata: row.metadata ?? {},
  }),
});

const toConversation = (row: ConversationRow, shown: Shown): Conversation => ({
  ...toSharedConversation(row, shown),
  unread_count: row.unread.human + row.unread.agent,
  unread: row.unread,
  last_read_seq: row.last_read_seq,
  own_seq: row.own_seq,
  ...(row.viewer_kind === "human" && {
    state: shownChatState(row),
    cleared_seq: row.cleared_seq,
  }),
});

/** The latest messages that the viewer can see, and the participants that lists show. */
async function shownIn(
  db: Sql,
  ids: readonly number[],
  viewerId: number,
): Promise<(id: number) => Shown> {
  const [latest, rows] = await Promise.all([
    latestMessages(db, ids, viewerId),
    ids.length === 1
      ? db.all<ShownRow>`
        SELECT m.conversation_id, ${PUBLIC_ACCOUNT} FROM members m
        JOIN accounts a ON a.id = m.account_id
        WHERE m.conversation_id = ${ids[0] as number} ORDER BY m.position LIMIT ${MOST_SHOWN}`
      : db.all<ShownRow>`
        SELECT m.conversation_id, ${PUBLIC_ACCOUNT} FROM ${firstMembers(ids)}
        JOIN accounts a ON a.id = m.account_id ORDER BY m.conversation_id, m.position`,
  ]);
  const members = Map.groupBy(rows, (row) => row.conversation_id);
  return (id) => ({
    latest: latest.get(id),
    participants: (members.get(id) ?? []).map(publicAccount),
  });
}

type ShownRow = AccountRow & { conversation_id: number };

const MOST_SHOWN = raw(SHOWN_PARTICIPANTS);

/** The first members of conversations. SQLite has no `LATERAL`, PostgreSQL no index of positions. */
const firstMembers = (ids: readonly number[]): Either => ({
  postgres: sql`unnest(${ids}::bigint[]) AS j (id)
    CROSS JOIN LATERAL (SELECT conversation_id, account_id, position FROM members
      WHERE conversation_id = j.id ORDER BY position LIMIT ${MOST_SHOWN}) m`,
  sqlite: sql`json_each(${ids}) j
    CROSS JOIN members m ON m.conversation_id = j.value AND m.position <= coalesce((
      SELECT o.position FROM members o WHERE o.conversation_id = j.value
      ORDER BY o.position LIMIT 1 OFFSET ${raw(SHOWN_PARTICIPANTS - 1)}), ${raw(LAST_SEQ)})`,
});
