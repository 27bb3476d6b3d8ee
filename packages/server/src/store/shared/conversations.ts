import type {
  Account,
  Conversation,
  ConversationDetail,
  Message,
  SharedConversation,
} from "@parley/protocol";
import { publicAccount } from "../../rules/accounts.ts";
import { iso } from "../../rules/time.ts";
import type { AccountRecord } from "../accounts.ts";
import type { MemberRecord } from "../conversations.ts";
import { accountOf } from "./accounts.ts";

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

export type MemberRow = AccountRecord & { always_on: boolean | number; last_read_seq: number };

export const toMember = (row: MemberRow): MemberRecord => ({
  account: accountOf(row),
  always_on: Boolean(row.always_on),
  last_read_seq: row.last_read_seq,
});

/** Columns after `by_erased_at` belong to the viewer's membership. */
export interface ConversationRow {
  id: number;
  uuid: string;
  kind: "direct" | "group";
  title: string | null;
  picture_id: string | null;
  created_at: number;
  updated_at: number;
  seq: number;
  participant_count: number;
  admin: string | null;
  by_username: string;
  by_kind: "human" | "agent";
  by_display_name: string;
  by_version: number;
  by_erased_at: number | null;
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
  created_by: publicAccount({
    username: row.by_username,
    kind: row.by_kind,
    display_name: row.by_display_name,
    version: row.by_version,
    erased_at: row.by_erased_at,
  }),
  admin: row.admin,
  created_at: iso(row.created_at),
  updated_at: iso(row.updated_at),
  seq: row.seq,
  last_message,
  participant_count: row.participant_count,
  picture_id: row.picture_id,
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

export type ReadPositionRow = Pick<Account, "username" | "kind"> & { last_read_seq: number };

/** How far people have read, by username. */
export const toReadPositions = (members: readonly ReadPositionRow[]): Record<string, number> =>
  Object.fromEntries(
    members
      .filter(({ kind }) => kind === "human")
      .map(({ username, last_read_seq }) => [username, last_read_seq]),
  );
