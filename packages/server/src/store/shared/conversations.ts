import type {
  Account,
  Conversation,
  ConversationDetail,
  Message,
  SharedConversation,
} from "@parley/protocol";
import { publicAccount } from "../../rules/accounts.ts";
import { excerptOf } from "../../rules/excerpt.ts";
import { iso } from "../../rules/time.ts";
import type { AccountRecord, JsonObject } from "../accounts.ts";
import type { MemberRecord } from "../conversations.ts";
import { ACCOUNT, accountOf, type JoinedAccount, joinedAccount } from "./accounts.ts";
import { decoded } from "./json.ts";

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

/** Number of participants of a group that lists and events show. */
export const SHOWN_PARTICIPANTS = 50;

/** Identifies the direct conversation of two accounts. */
export const pairKey = ([one, other]: readonly [number, number]) =>
  `${Math.min(one, other)}:${Math.max(one, other)}`;

export const MEMBERS = `SELECT ${ACCOUNT}, m.always_on, m.last_read_seq FROM members m
  JOIN accounts a ON a.id = m.account_id WHERE m.conversation_id = $1 ORDER BY m.position`;

export type MemberRow = AccountRecord & { always_on: boolean | number; last_read_seq: number };

export const toMember = (row: MemberRow): MemberRecord => ({
  account: accountOf(row),
  always_on: Boolean(row.always_on),
  last_read_seq: row.last_read_seq,
});

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

const MENTIONS_MEMBER = `EXISTS (SELECT 1 FROM mentions e WHERE e.account_id = me.account_id
  AND e.conversation_id = me.conversation_id AND e.seq = n.seq)`;

const creator = joinedAccount("creator");

/**
 * Selects `ConversationRow`s for the viewer, parameter 1. `k` is the alias of the counters, `me` of the
 * viewer's membership.
 */
export const CONVERSATION_VIEW = `SELECT c.id, c.uuid, c.kind, c.title, c.created_at, c.picture_id, c.external_id,
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

/** Columns after `admin` belong to the viewer's membership. */
export interface ConversationRow extends JoinedAccount<"creator"> {
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

export const toSharedConversation = (
  row: ConversationRow,
  last_message: Message | null,
  participants: Account[],
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
  last_message: last_message && excerptOf(last_message),
  participant_count: row.participant_count,
  picture_id: row.picture_id,
  ...(row.external_id !== null && {
    external_id: row.external_id,
    metadata: decoded(row.metadata) ?? {},
  }),
});

export const toConversation = (
  row: ConversationRow,
  last_message: Message | null,
  participants: Account[],
): Conversation => ({
  ...toSharedConversation(row, last_message, participants),
  unread_count: row.unread_humans + row.unread_agents,
  unread: {
    human: row.unread_humans,
    agent: row.unread_agents,
    mentions: row.unread_mentions,
  },
  last_read_seq: row.last_read_seq,
  own_seq: row.own_seq,
});

export function toConversationDetail(
  row: ConversationRow,
  last_message: Message | null,
  members: readonly MemberRecord[],
): ConversationDetail {
  const participants = members.map(({ account }) => publicAccount(account));
  const positions = members.map(({ account, last_read_seq }) => ({ ...account, last_read_seq }));
  return {
    ...toConversation(row, last_message, participants),
    reads: toReadPositions(positions),
  };
}

/** How far the members have read whom lists show. */
export const READ_POSITIONS = `SELECT a.username, a.kind, m.last_read_seq FROM members m
  JOIN accounts a ON a.id = m.account_id
  WHERE m.conversation_id = $1 ORDER BY m.position LIMIT ${SHOWN_PARTICIPANTS}`;

export type ReadPositionRow = Pick<Account, "username" | "kind"> & { last_read_seq: number };

/** How far people have read, by username. */
export const toReadPositions = (members: readonly ReadPositionRow[]): Record<string, number> =>
  Object.fromEntries(
    members
      .filter(({ kind }) => kind === "human")
      .map(({ username, last_read_seq }) => [username, last_read_seq]),
  );

export const COUNTERS = `SELECT c.uuid, k.seq FROM members m
  JOIN conversations c ON c.id = m.conversation_id
  JOIN counters k ON k.conversation_id = m.conversation_id WHERE m.account_id = $1`;

export const FORMER_CONVERSATIONS = `SELECT f.conversation_id AS id, k.seq FROM former_members f
  JOIN counters k ON k.conversation_id = f.conversation_id WHERE f.account_id = $1`;

/**
 * An unread count is the conversation's total of messages minus the member's total of read ones, so
 * its cost does not depend on the number of messages. `markRead` sets the member's total: the running
 * total of the latest message up to the new read position, plus the later messages that are deleted or
 * hidden, which count as read. Messages of blocked people are subtracted when the count is read.
 */
export const UNREAD_COUNT = `SELECT k.humans - m.read_humans + k.agents - m.read_agents
    - ${ofBlocked("m", "true")} AS count
  FROM members m JOIN counters k ON k.conversation_id = m.conversation_id
  WHERE m.conversation_id = $1 AND m.account_id = $2`;
