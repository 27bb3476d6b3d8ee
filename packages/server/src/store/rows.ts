import type {
  Account,
  AgentLimits,
  ComponentAction,
  ComponentUse,
  Conversation,
  ConversationChange,
  ConversationDetail,
  Message,
  ReactionSummary,
  SharedConversation,
  Turn,
} from "@parley/protocol";
import { publicAccount } from "../domain/accounts.ts";
import { DEFAULT_LIMITS } from "../rules/budget.ts";
import type { AccountRecord, Renamed } from "./accounts.ts";
import type { AgentRecord } from "./agents.ts";
import type { MemberRecord } from "./conversations.ts";
import type { NewChanges } from "./group-changes.ts";
import type { Hidden } from "./hidden-messages.ts";
import type { NewMessage } from "./messages.ts";
import type { PlacedReaction } from "./reactions.ts";
import type { FinishedTurn, TurnRecord } from "./turns.ts";

/** What every backend makes of the rows it has read. */

/** How many participants of a group lists and events show. */
export const SHOWN_PARTICIPANTS = 50;
/** Whose eyes broadcasts are made for. */
export const NOBODY = -1;

/** How many renamed accounts one answer looks at, and how many hidden messages it has. */
export const RENAMED_PER_PAGE = 1000;
export const HIDDEN_PER_PAGE = 1000;

/** The columns of an account, under the name `a`. */
export const ACCOUNT =
  "a.id, a.username, a.kind, a.display_name, a.version, a.owner_id, a.provider";

/** What a conversation needs to know of an agent's limits, under the name `g`. */
export const SEAT_LIMITS = `coalesce(g.spenders, '${DEFAULT_LIMITS.spenders}') AS spenders,
  coalesce(g.waiting_turns, ${DEFAULT_LIMITS.waiting_turns}) AS waiting_turns`;

/** An agent with its owner, what the owner has set, and its key. */
export const AGENT = `SELECT ${ACCOUNT}, o.username AS owner_username,
    o.display_name AS owner_display_name, o.version AS owner_version, g.model, g.instructions,
    g.limits_set, g.spenders, g.daily_tokens, g.chat_daily_tokens, g.turns_per_minute,
    g.waiting_turns, k.sealed AS sealed_key, k.tail AS key_tail
  FROM accounts a
  JOIN accounts o ON o.id = a.owner_id
  LEFT JOIN agents g ON g.account_id = a.id
  LEFT JOIN agent_keys k ON k.owner_id = a.owner_id AND k.provider = a.provider`;

export const iso = (ms: number) => new Date(ms).toISOString();
const isoOrNull = (ms: number | null) => (ms === null ? null : iso(ms));
export const dayOf = (ms: number) => iso(ms).slice(0, 10);

/** There is one direct conversation for each of these. */
export const pairKey = ([one, other]: readonly [number, number]) =>
  `${Math.min(one, other)}:${Math.max(one, other)}`;

export type AgentRow = AccountRecord &
  AgentLimits & {
    /** Null for an agent that was never touched. */
    limits_set: boolean | number | null;
    model: string | null;
    instructions: string | null;
    sealed_key: string | null;
    key_tail: string | null;
    owner_username: string;
    owner_display_name: string;
    owner_version: number;
  };

export function toAgent(row: AgentRow): AgentRecord {
  const { id, username, kind, display_name, version, owner_id, provider } = row;
  return {
    account: { id, username, kind, display_name, version, owner_id, provider },
    owner: {
      id: owner_id ?? 0,
      username: row.owner_username,
      kind: "human",
      display_name: row.owner_display_name,
      version: row.owner_version,
      owner_id: null,
      provider: null,
    },
    model: row.model,
    instructions: row.instructions,
    limits: row.limits_set
      ? {
          spenders: row.spenders,
          daily_tokens: row.daily_tokens,
          chat_daily_tokens: row.chat_daily_tokens,
          turns_per_minute: row.turns_per_minute,
          waiting_turns: row.waiting_turns,
        }
      : DEFAULT_LIMITS,
    sealed_key: row.sealed_key,
    key_tail: row.key_tail,
  };
}

/** How many uses of a message's components are kept. */
export const KEPT_USES = 50;

/** What a message row holds of the component action that it replies to. */
export interface StoredAction {
  token: string;
  label: string | null;
  by: number;
}

export const storedAction = ({ action }: NewMessage): StoredAction | null =>
  action ? { token: action.token, label: action.label, by: action.by.id } : null;

export interface UseRow extends Account {
  message_id: number;
  token: string;
  used_at: number;
}

export const toUse = (row: UseRow): ComponentUse => ({
  token: row.token,
  by: publicAccount(row),
  at: iso(row.used_at),
});

export interface MessageRow extends Account {
  id: number;
  uuid: string;
  conversation_uuid: string;
  seq: number;
  version: number;
  content: string;
  client_msg_id: string | null;
  reply_to_id: string | null;
  mentions: string[] | null;
  turn: Turn | null;
  reactions: number;
  action: StoredAction | null;
  uses: number;
  created_at: number;
  edited_at: number | null;
  finalized_at: number | null;
  deleted_at: number | null;
  sender_version: number;
}

/** What other tables hold of a message. */
export interface MessageParts {
  content: string;
  reactions: ReactionSummary[];
  action: ComponentAction | null;
  uses: ComponentUse[];
}

export const toMessage = (row: MessageRow, parts: MessageParts): Message => ({
  id: row.uuid,
  conversation_id: row.conversation_uuid,
  seq: row.seq,
  version: row.version,
  sender: publicAccount({ ...row, version: row.sender_version }),
  content: parts.content,
  client_msg_id: row.client_msg_id,
  reply_to_id: row.reply_to_id,
  created_at: iso(row.created_at),
  edited_at: isoOrNull(row.edited_at),
  finalized_at: isoOrNull(row.finalized_at),
  reactions: parts.reactions,
  mentions: row.mentions ?? [],
  turn: row.turn,
  action: parts.action,
  uses: parts.uses,
});

/** A reaction as it is stored, with its reactor. */
export interface ReactionRow extends Account {
  id: number;
  emoji: string;
  created_at: number;
}

export const placedReaction = (message_id: string, row: ReactionRow): PlacedReaction => ({
  place: row.id,
  reaction: {
    message_id,
    reactor: publicAccount(row),
    emoji: row.emoji,
    created_at: iso(row.created_at),
  },
});

/** A message as it has just been inserted. */
export function newMessage(message: NewMessage, id: string, seq: number): Message {
  const created_at = iso(message.at);
  return {
    id,
    conversation_id: message.conversation.uuid,
    seq,
    version: seq,
    sender: publicAccount(message.sender),
    content: message.content,
    client_msg_id: message.client_msg_id,
    reply_to_id: message.reply_to_id,
    created_at,
    edited_at: null,
    finalized_at: message.turn ? null : created_at,
    reactions: [],
    mentions: [...message.mentions],
    turn: message.turn ?? null,
    action: message.action ? { ...message.action, by: publicAccount(message.action.by) } : null,
    uses: [],
  };
}

/** Where a page of updates ends, if there is more than fits: messages and changes of the group. */
export function pageEnd(
  messages: readonly { version: number }[],
  changes: readonly { seq: number }[],
  limit: number,
): { seq?: number; has_more: boolean } {
  const places = [...messages.map(({ version }) => version), ...changes.map(({ seq }) => seq)];
  const end = places.sort((one, other) => one - other)[limit - 1];
  const has_more = places.length > limit;
  return has_more && end !== undefined ? { seq: end, has_more } : { has_more };
}

/** What a finished turn's message shows of it. */
export const turnShown = (
  { trigger_uuid, model }: TurnRecord,
  { status, error, usage }: FinishedTurn,
): Turn => ({ status, triggered_by: trigger_uuid, model, error, usage });

/** What a row holds of a group's changes that one call made. */
export interface ChangeRow {
  seq: number;
  at: number;
  actor_id: number;
  changes: StoredChange[];
}

interface StoredChange {
  kind: ConversationChange["kind"];
  subjects: number[];
  subject_count: number;
  title: string | null;
  always_on: boolean | null;
}

export const storedChanges = ({ changes }: NewChanges): StoredChange[] =>
  changes.map(({ kind, subjects = [], title = null, always_on = null }) => ({
    kind,
    subjects: subjects.slice(0, SHOWN_PARTICIPANTS).map(({ id }) => id),
    subject_count: subjects.length,
    title,
    always_on,
  }));

/** The accounts that changes name. */
export const accountsIn = (rows: readonly ChangeRow[]): number[] => [
  ...new Set(
    rows.flatMap(({ actor_id, changes }) => [
      actor_id,
      ...changes.flatMap(({ subjects }) => subjects),
    ]),
  ),
];

export function toChanges(
  rows: readonly ChangeRow[],
  accounts: ReadonlyMap<number, Account>,
): ConversationChange[] {
  const account = (id: number) => {
    const found = accounts.get(id);
    if (!found) throw new Error(`account ${id} is missing`);
    return found;
  };
  return rows.flatMap(({ seq, at, actor_id, changes }) =>
    changes.map(({ subjects, ...change }) => ({
      seq,
      at: iso(at),
      actor: account(actor_id),
      ...change,
      subjects: subjects.map(account),
    })),
  );
}

export interface ConversationRow {
  id: number;
  uuid: string;
  kind: "direct" | "group";
  title: string | null;
  created_at: number;
  updated_at: number;
  seq: number;
  participant_count: number;
  admin: string | null;
  by_username: string;
  by_kind: "human" | "agent";
  by_display_name: string;
  by_version: number;
  unread_humans: number;
  unread_agents: number;
  unread_mentions: number;
  last_read_seq: number;
  own_seq: number;
}

/** A conversation as everybody sees it. */
export const toShared = (
  row: ConversationRow,
  last_message: Message | null,
  participants: Account[],
): SharedConversation => ({
  id: row.uuid,
  kind: row.kind,
  title: row.title,
  participants,
  created_by: {
    username: row.by_username,
    kind: row.by_kind,
    display_name: row.by_display_name,
    version: row.by_version,
  },
  admin: row.admin,
  created_at: iso(row.created_at),
  updated_at: iso(row.updated_at),
  seq: row.seq,
  last_message,
  participant_count: row.participant_count,
});

/** A conversation as its viewer sees it. */
export const toPersonal = (
  row: ConversationRow,
  last_message: Message | null,
  participants: Account[],
): Conversation => ({
  ...toShared(row, last_message, participants),
  unread_count: row.unread_humans + row.unread_agents,
  unread: {
    human: row.unread_humans,
    agent: row.unread_agents,
    mentions: row.unread_mentions,
  },
  last_read_seq: row.last_read_seq,
  own_seq: row.own_seq,
});

/** The same with all its participants, and how far each has read. */
export function toDetail(
  row: ConversationRow,
  last_message: Message | null,
  members: readonly MemberRecord[],
): ConversationDetail {
  const participants = members.map(({ account }) => publicAccount(account));
  return {
    ...toPersonal(row, last_message, participants),
    reads: toReads(members.map(({ account, last_read_seq }) => ({ ...account, last_read_seq }))),
  };
}

export type ReadPosition = Pick<Account, "username" | "kind"> & { last_read_seq: number };

/** How far people have read, by username. */
export const toReads = (members: readonly ReadPosition[]): Record<string, number> =>
  Object.fromEntries(
    members
      .filter(({ kind }) => kind === "human")
      .map(({ username, last_read_seq }) => [username, last_read_seq]),
  );

export type RenamedRow = Account & { visible: boolean | number };

/** A page of new names, in the order of their versions; `current` is the counter of names. */
export function toRenamed(rows: readonly RenamedRow[], current: number): Renamed {
  const has_more = rows.length === RENAMED_PER_PAGE;
  return {
    accounts: rows.filter(({ visible }) => visible).map(publicAccount),
    seq: (has_more && rows.at(-1)?.version) || current,
    has_more,
  };
}

export interface HiddenRow {
  conversation_id: string;
  id: string;
  own_seq: number;
}

/**
 * A page of hidden messages, in the order in which they were hidden. What was hidden at once has
 * one counter value and is never split: it is far less than a page.
 */
export function toHidden(rows: readonly HiddenRow[], current: number): Hidden {
  const next = rows[HIDDEN_PER_PAGE]?.own_seq;
  const page = rows.filter(({ own_seq }) => next === undefined || own_seq < next);
  const byConversation = Map.groupBy(page, ({ conversation_id }) => conversation_id);
  return {
    hidden: [...byConversation].map(([conversation_id, some]) => ({
      conversation_id,
      ids: some.map(({ id }) => id),
    })),
    seq: next === undefined ? current : next - 1,
    has_more: next !== undefined,
  };
}
