import type { ChatState, OutputOf } from "@parley/protocol";
import { type StoredChatState, shownChatState } from "../rules/chat-states.ts";
import type { AccountRecord } from "./account-records.ts";
import { CHAT_STATE, HAS_NEWS, MENTIONS_OF_BLOCKED, ofBlocked } from "./conversation-views.ts";
import { type ConversationRecord, readTotals } from "./conversations.ts";
import { incrementOwnCounter, ownCounter } from "./counters.ts";
import { deleteUnsentFilesIn } from "./files.ts";
import { raw, type Sql, sql } from "./sql.ts";

const STATES_PER_PAGE = 1000;

const ALL_OF_BLOCKED = ofBlocked("me", "true");

/** How members see a conversation: a part of their memberships, which ends with them. */
export const chatStateReads = {
  /** Null for an account that is not a member. */
  chatState: (db: Sql, conversationId: number, accountId: number) =>
    db.getAs(toRecord)`
      ${STATES} WHERE me.conversation_id = ${conversationId} AND me.account_id = ${accountId}`,
  /**
   * A page of an account's views that changed after a value of its own counter and up to another. The
   * next page starts after `seq`. Without `since` the page is empty.
   */
  async chatStatesSince(
    db: Sql,
    accountId: number,
    since: number | undefined,
    upTo: number,
  ): Promise<{ states: ChatStateRecord[]; seq: number; has_more: boolean }> {
    const rows = since === undefined ? [] : await statesSince(db, accountId, since, upTo);
    const next = rows[STATES_PER_PAGE];
    return {
      states: rows.slice(0, STATES_PER_PAGE).map(toRecord),
      seq: next ? next.own_seq - 1 : upTo,
      has_more: next !== undefined,
    };
  },
  /** The uuids of the conversations that lists leave out: cleared, and with nothing new since. */
  unlistedChats: (db: Sql, accountId: number) =>
    db.column<string>`
      SELECT c.uuid FROM members m JOIN conversations c ON c.id = m.conversation_id
      WHERE m.account_id = ${accountId} AND m.unlisted AND NOT ${HAS_NEWS}`,
  /** Up to which value nothing exists for an account any more; zero for one that is not a member. */
  clearedSeq: (db: Sql, conversationId: number, accountId: number) =>
    db.firstNumber`
      SELECT cleared_seq FROM members
      WHERE conversation_id = ${conversationId} AND account_id = ${accountId}`,
  /** How many conversations an account has pinned. */
  pinnedChats: (db: Sql, accountId: number) =>
    db.firstNumber`SELECT count(*) AS count FROM members WHERE account_id = ${accountId} AND pinned`,
  /** Erased conversations whose messages are not all deleted, oldest first. */
  openChatErasures: (db: Sql) =>
    db.all<{ id: number; uuid: string }>`
      SELECT c.id, c.uuid FROM conversation_erasures e CROSS JOIN conversations c
      WHERE c.id = e.conversation_id
      ORDER BY e.created_at, c.id`,
  /** What a badge shows of an account's conversations. Threads are counted elsewhere. */
  async unreadTotals(db: Sql, accountId: number, at: number): Promise<UnreadTotals> {
    const totals = await db.get<UnreadTotals>`
      SELECT coalesce(sum(CASE WHEN t.quiet THEN 0 ELSE t.messages END), 0)::bigint AS messages,
        count(*) FILTER (WHERE CASE WHEN t.quiet THEN t.mentions ELSE t.messages END > 0)
          AS conversations,
        coalesce(sum(t.mentions), 0)::bigint AS mentions
      FROM (SELECT (me.muted_until IS NOT NULL AND me.muted_until > ${at})
            OR coalesce(me.notify, '') = 'none' AS quiet,
          k.humans - me.read_humans + k.agents - me.read_agents - ${ALL_OF_BLOCKED} AS messages,
          me.unread_mentions - ${MENTIONS_OF_BLOCKED} AS mentions
        FROM members me JOIN counters k ON k.conversation_id = me.conversation_id
        WHERE me.account_id = ${accountId}) t`;
    return totals ?? { conversations: 0, messages: 0, mentions: 0 };
  },
};

/** Each function that changes something increments the account's own counter. */
export const chatStateWrites = {
  /** Sets what is given. Returns false, and changes nothing, if all of it is so already. */
  async setChatState(
    db: Sql,
    conversationId: number,
    accountId: number,
    given: ChatStateChange,
  ): Promise<boolean> {
    db.changes(conversationId);
    await db.ownRow("accounts", accountId);
    const before = await db.get<StoredChatState>`
      SELECT notify, muted_until, pinned, archived FROM members
      WHERE conversation_id = ${conversationId} AND account_id = ${accountId}`;
    if (!before) return false;
    const stored = { ...before, pinned: !!before.pinned, archived: !!before.archived };
    const differs = (name: keyof ChatStateChange) =>
      given[name] !== undefined && given[name] !== stored[name];
    if (!SETTABLE.some(differs)) return false;
    const own_seq = await incrementOwnCounter(db, accountId);
    const member = { conversation_id: conversationId, account_id: accountId };
    await db.update("members", member, { ...given, own_seq });
    if (differs("archived")) await countArchived(db, conversationId, given.archived ? 1 : -1);
    return true;
  },
  /**
   * Ends the archive of a conversation for those who are to see a new message of this sender, and returns
   * their ids. The conversation stays archived for those who have muted it or blocked the sender.
   */
  async endArchives(
    db: Sql,
    conversationId: number,
    sender: Pick<AccountRecord, "id" | "owner_id">,
    at: number,
  ): Promise<AccountPlace[]> {
    db.changes(conversationId);
    const ended = await db.all<AccountPlace>`
      SELECT a.id, a.username FROM members m JOIN accounts a ON a.id = m.account_id
      WHERE m.conversation_id = ${conversationId} AND m.archived
        AND (m.muted_until IS NULL OR m.muted_until <= ${at}) AND coalesce(m.notify, '') <> 'none'
        AND NOT EXISTS (SELECT 1 FROM blocks b WHERE b.account_id = m.account_id
          AND b.blocked_id IN (${sender.id}, ${sender.owner_id}::bigint))
      ORDER BY a.id`;
    for (const { id } of ended) {
      const own_seq = await incrementOwnCounter(db, id);
      const member = { conversation_id: conversationId, account_id: id };
      await db.update("members", member, { archived: false, own_seq });
    }
    if (ended.length > 0) await countArchived(db, conversationId, -ended.length);
    return ended;
  },
  /**
   * Moves a member's own read position back, while others are shown the one before. Returns false, and
   * changes nothing, when it is at `seq` or before.
   */
  async markUnread(
    db: Sql,
    conversationId: number,
    accountId: number,
    seq: number,
  ): Promise<boolean> {
    db.changes(conversationId);
    await db.ownRow("accounts", accountId);
    const own_seq = (await ownCounter(db, accountId)) + 1;
    const moved = await db.change`
      ${readTotals(conversationId, accountId, seq)}
      UPDATE members SET last_read_seq = ${seq},
        shown_read_seq = coalesce(shown_read_seq, last_read_seq),
        read_humans = reached.humans + gone.humans, read_agents = reached.agents + gone.agents,
        unread_mentions = (SELECT count(*) FROM mentions WHERE account_id = ${accountId}
          AND conversation_id = ${conversationId} AND seq > ${seq}), own_seq = ${own_seq}
      FROM reached CROSS JOIN gone
      WHERE members.conversation_id = ${conversationId} AND members.account_id = ${accountId}
        AND members.last_read_seq > ${seq}`;
    if (moved === 0) return false;
    await incrementOwnCounter(db, accountId);
    return true;
  },
  /** Counts a change of a member's read position as one of its own view. */
  async countChatState(db: Sql, conversationId: number, accountId: number): Promise<void> {
    db.changes(conversationId);
    const own_seq = await incrementOwnCounter(db, accountId);
    const member = { conversation_id: conversationId, account_id: accountId };
    await db.update("members", member, { own_seq });
  },
  /**
   * Makes everything up to the current value of the counter not exist for a member any more. Returns
   * the new value of the own counter, or null, and changes nothing, when that is so already.
   */
  async clearChat(db: Sql, conversationId: number, accountId: number): Promise<number | null> {
    db.changes(conversationId);
    await db.ownRow("accounts", accountId);
    const own_seq = (await ownCounter(db, accountId)) + 1;
    // What was not read yet counts as read, and others are not told that it was.
    const cleared = await db.change`
      UPDATE members SET cleared_seq = k.seq, unlisted = true, last_read_seq = k.seq,
        shown_read_seq = nullif(coalesce(shown_read_seq, last_read_seq), k.seq),
        read_humans = k.humans, read_agents = k.agents, unread_mentions = 0, own_seq = ${own_seq}
      FROM counters k
      WHERE k.conversation_id = ${conversationId} AND members.conversation_id = k.conversation_id
        AND members.account_id = ${accountId}
        AND NOT (members.unlisted AND members.cleared_seq = k.seq)`;
    return cleared === 0 ? null : incrementOwnCounter(db, accountId);
  },
  /**
   * Makes a conversation not exist any more, for anybody. Its messages are to be deleted: it is among
   * `openChatErasures` until `finishChatErasure`. Deletes its incoming hooks, and what members have
   * uploaded and not sent. Increments nobody's own counter.
   */
  async eraseChat(db: Sql, { id, uuid }: ConversationRecord, at: number): Promise<void> {
    db.changes(id);
    const nothing = { title: null, direct_pair: null, external_id: null, metadata: null };
    await db.update("conversations", { id }, { erased_at: at, ...nothing });
    await deleteUnsentFilesIn(db, id);
    for (const table of MEMBERSHIPS) {
      await db.remove(table, { conversation_id: id });
    }
    await db.remove("incoming_hooks", { chat: uuid });
    await db.insert("conversation_erasures", { conversation_id: id, created_at: at });
  },
  /** Records that all messages of an erased conversation are deleted. */
  finishChatErasure: (db: Sql, conversationId: number) =>
    db.remove("conversation_erasures", { conversation_id: conversationId }),
};

/** Tables that say who takes or took part, and what changed of the conversation itself. */
const MEMBERSHIPS = ["members", "former_members", "final_departures", "conversation_changes"];

export interface ChatStateChange {
  readonly notify?: ChatState["notify"] | undefined;
  readonly muted_until?: number | null | undefined;
  readonly pinned?: boolean | undefined;
  readonly archived?: boolean | undefined;
}

const SETTABLE = ["notify", "muted_until", "pinned", "archived"] as const;

export interface ChatStateRecord {
  /** The uuid of the conversation. */
  readonly conversation_id: string;
  readonly state: ChatState;
  readonly last_read_seq: number;
  readonly cleared_seq: number;
  /** The value of the member's own counter when it last changed. */
  readonly own_seq: number;
}

export type UnreadTotals = Omit<OutputOf<"getUnread">, "threads">;

export interface AccountPlace {
  readonly id: number;
  readonly username: string;
}

type StateRow = StoredChatState & Omit<ChatStateRecord, "state">;

const STATES = sql`
  SELECT c.uuid AS conversation_id, me.last_read_seq, me.cleared_seq, me.own_seq, ${CHAT_STATE}
  FROM members me JOIN conversations c ON c.id = me.conversation_id
  JOIN counters k ON k.conversation_id = me.conversation_id`;

/** One more than a page, with the condition of the index. */
const statesSince = (db: Sql, accountId: number, since: number, upTo: number) => db.all<StateRow>`
  ${STATES} WHERE me.account_id = ${accountId} AND me.own_seq > 0 AND me.own_seq > ${since}
    AND me.own_seq <= ${upTo} ORDER BY me.own_seq LIMIT ${raw(STATES_PER_PAGE + 1)}`;

const toRecord = (row: StateRow): ChatStateRecord => ({
  conversation_id: row.conversation_id,
  state: shownChatState(row),
  last_read_seq: row.last_read_seq,
  cleared_seq: row.cleared_seq,
  own_seq: row.own_seq,
});

const countArchived = (db: Sql, conversationId: number, by: number) =>
  db.change`
    UPDATE counters SET archived = archived + ${by} WHERE conversation_id = ${conversationId}`;
