import type { Account, Message, ReactionSummary, Turn } from "@parley/protocol";
import type { HistoryQuery, MessageRecord } from "../messages.ts";
import {
  HIDDEN_PER_PAGE,
  type HiddenRow,
  KEPT_USES,
  type MessageRow,
  newMessage,
  pageEnd,
  type StoredAction,
  storedAction,
  toHidden,
  toMessage,
  toUse,
  type UseRow,
} from "../rows.ts";
import type { ReadTx, WriteTx } from "../store.ts";
import type { Updates, UpdatesQuery } from "../updates.ts";
import type { Connection } from "./connection.ts";
import { changesSince, changeViews } from "./group-changes.ts";

type Reads = Pick<
  ReadTx,
  | "message"
  | "messageViews"
  | "sentBefore"
  | "history"
  | "updates"
  | "hiddenSince"
  | "isHidden"
  | "contextMessages"
>;
type Writes = Pick<
  WriteTx,
  "insertMessage" | "editMessage" | "deleteMessages" | "hideMessages" | "useComponent"
>;

const VIEW = `m.id, m.uuid, c.uuid AS conversation_uuid, m.seq, m.version, m.content,
  m.client_msg_id, m.reply_to_id, m.mentions, m.turn, m.reactions, m.action, m.uses,
  m.created_at, m.edited_at, m.finalized_at, m.deleted_at, a.username, a.kind, a.display_name,
  a.version AS sender_version`;
const JOINED = `messages m JOIN accounts a ON a.id = m.sender_id
  JOIN conversations c ON c.id = m.conversation_id`;
const NOT_HIDDEN = `NOT EXISTS (SELECT 1 FROM hidden h WHERE h.account_id = ?2
  AND h.conversation_id = m.conversation_id AND h.seq = m.seq)`;

type ViewRow = Omit<MessageRow, "mentions" | "turn" | "action"> & {
  mentions: string | null;
  turn: string | null;
  action: string | null;
};

/** Turns rows into messages as a viewer sees them. */
export type Assemble = (rows: readonly ViewRow[], viewerId: number) => Message[];

function messageAssembly(db: Connection): Assemble {
  const reactions = db.query<{ message_id: number; emoji: string; count: number; reacted: number }>(
    `SELECT r.message_id, r.emoji, count(*) AS count, max(r.account_id = ?2) AS reacted
     FROM json_each(?1) j JOIN reactions r ON r.message_id = j.value
     GROUP BY r.message_id, r.emoji ORDER BY min(r.id)`,
  );
  const chunks = db.query<{ text: string }>(
    "SELECT text FROM chunks WHERE message_id = ? ORDER BY byte_offset",
  );
  const streamed = (id: number) =>
    chunks
      .all(id)
      .map(({ text }) => text)
      .join("");
  const details = componentDetails(db);
  return (rows, viewerId) => {
    const reacted = rows.filter((row) => row.reactions > 0).map((row) => row.id);
    const summaries = new Map<number, ReactionSummary[]>();
    if (reacted.length > 0) {
      for (const row of reactions.all(JSON.stringify(reacted), viewerId)) {
        const summary = { emoji: row.emoji, count: row.count, reacted: row.reacted === 1 };
        const list = summaries.get(row.message_id);
        if (list) list.push(summary);
        else summaries.set(row.message_id, [summary]);
      }
    }
    return rows.map((row) => {
      const action = row.action === null ? null : (JSON.parse(row.action) as StoredAction);
      const mentions = parseMentions(row.mentions);
      const turn = row.turn === null ? null : (JSON.parse(row.turn) as Turn);
      const whole = { ...row, mentions, turn, action };
      return toMessage(whole, {
        content: row.finalized_at === null ? streamed(row.id) : row.content,
        reactions: summaries.get(row.id) ?? [],
        ...details(whole),
      });
    });
  };
}

/** Which action a message replies to, and who used its own components. */
function componentDetails(db: Connection) {
  const account = db.query<Account>(
    "SELECT username, kind, display_name, version FROM accounts WHERE id = ?",
  );
  const uses = db.query<UseRow>(
    `SELECT u.message_id, u.token, u.used_at, a.username, a.kind, a.display_name, a.version
     FROM component_uses u JOIN accounts a ON a.id = u.account_id
     WHERE u.message_id = ? ORDER BY u.id`,
  );
  return ({ id, action, uses: count, finalized_at }: MessageRow) => {
    const by = action && account.get(action.by);
    return {
      action: action && by ? { ...action, by } : null,
      uses: count > 0 && finalized_at !== null ? uses.all(id).map(toUse) : [],
    };
  };
}

const parseMentions = (stored: string | null): string[] =>
  stored === null ? [] : (JSON.parse(stored) as string[]);
export const storeMentions = (mentions: readonly string[]) =>
  mentions.length === 0 ? null : JSON.stringify(mentions);

/** The latest message of a conversation that a viewer can see. */
export function latestMessage(db: Connection) {
  const assemble = messageAssembly(db);
  const latest = db.query<ViewRow>(
    `SELECT ${VIEW} FROM ${JOINED} WHERE m.conversation_id = ?1 AND m.deleted_at IS NULL
     AND ${NOT_HIDDEN} ORDER BY m.seq DESC LIMIT 1`,
  );
  return (conversationId: number, viewerId: number): Message | null =>
    assemble(latest.all(conversationId, viewerId), viewerId)[0] ?? null;
}

type RecordRow = Omit<MessageRecord, "mentions" | "finalized" | "deleted"> & {
  mentions: string | null;
  finalized_at: number | null;
  deleted_at: number | null;
};

export function messageReads(db: Connection): Reads {
  const assemble = messageAssembly(db);
  const record = db.query<RecordRow>(
    `SELECT m.id, m.uuid, m.conversation_id, c.uuid AS conversation_uuid, m.seq, m.sender_id,
            a.owner_id AS sender_owner_id, a.kind AS sender_kind, m.mentions, m.finalized_at,
            m.deleted_at
     FROM ${JOINED} WHERE m.uuid = ?`,
  );
  const views = db.query<ViewRow>(
    `SELECT ${VIEW} FROM json_each(?1) j JOIN ${JOINED}
     WHERE m.uuid = j.value AND m.deleted_at IS NULL AND ${NOT_HIDDEN} ORDER BY j.key`,
  );
  const sent = db.query<{ uuid: string }>(
    "SELECT uuid FROM messages WHERE conversation_id = ? AND sender_id = ? AND client_msg_id = ?",
  );
  const hidden = db.query(
    "SELECT 1 FROM hidden WHERE account_id = ? AND conversation_id = ? AND seq = ?",
  );
  const ownCounter = db.query<{ own_seq: number }>("SELECT own_seq FROM accounts WHERE id = ?");
  const hiddenLater = db.query<HiddenRow>(
    `SELECT c.uuid AS conversation_id, m.uuid AS id, h.own_seq FROM hidden h
     CROSS JOIN messages m ON m.conversation_id = h.conversation_id AND m.seq = h.seq
     CROSS JOIN conversations c ON c.id = h.conversation_id
     WHERE h.account_id = ? AND h.own_seq > ? ORDER BY h.own_seq LIMIT ${HIDDEN_PER_PAGE + 1}`,
  );
  const live = `SELECT ${VIEW} FROM ${JOINED}
    WHERE m.conversation_id = ?1 AND m.deleted_at IS NULL AND ${NOT_HIDDEN}`;
  const context = db.query<ViewRow>(
    `${live} AND m.seq <= ?3 AND m.finalized_at IS NOT NULL ORDER BY m.seq DESC LIMIT ?4`,
  );
  const answers = db.query<ViewRow>(
    `${live} AND m.seq > ?3 AND m.seq <= ?4 AND m.finalized_at IS NOT NULL AND m.sender_id = ?5
     AND EXISTS (SELECT 1 FROM turns t JOIN messages g ON g.id = t.trigger_id
       WHERE t.message_id = m.id AND g.seq < ?6) ORDER BY m.seq DESC`,
  );
  const older = db.query<ViewRow>(`${live} AND m.seq < ?3 ORDER BY m.seq DESC LIMIT ?4`);
  const newer = db.query<ViewRow>(`${live} AND m.seq > ?3 ORDER BY m.seq LIMIT ?4`);

  return {
    message: (uuid) => {
      const row = record.get(uuid);
      if (!row) return null;
      const { finalized_at, deleted_at, ...rest } = row;
      return {
        ...rest,
        mentions: parseMentions(row.mentions),
        finalized: finalized_at !== null,
        deleted: deleted_at !== null,
      };
    },
    messageViews: (uuids, viewerId) =>
      assemble(views.all(JSON.stringify(uuids), viewerId), viewerId),
    sentBefore: (conversationId, senderId, clientMsgId) =>
      sent.get(conversationId, senderId, clientMsgId)?.uuid ?? null,
    hiddenSince: (accountId, since) =>
      toHidden(
        since === undefined ? [] : hiddenLater.all(accountId, since),
        ownCounter.get(accountId)?.own_seq ?? 0,
      ),
    isHidden: (message, accountId) =>
      hidden.get(accountId, message.conversation_id, message.seq) !== null,
    history: ({ conversationId, viewerId, from, limit }: HistoryQuery) => {
      const forward = from?.direction === "newer";
      const bound = from?.seq ?? Number.MAX_SAFE_INTEGER;
      const rows = (forward ? newer : older).all(conversationId, viewerId, bound, limit + 1);
      const items = rows.slice(0, limit);
      if (!forward) items.reverse();
      return { items: assemble(items, viewerId), has_more: rows.length > limit };
    },
    updates: updatesQuery(db, assemble),
    contextMessages: ({ conversationId, viewerId, upTo, answers: later, limit }) => {
      const { agentId, upTo: end, toBefore } = later;
      const rows = [
        ...answers.all(conversationId, viewerId, upTo, end, agentId, toBefore),
        ...context.all(conversationId, viewerId, upTo, limit),
      ];
      return assemble(rows, viewerId);
    },
  };
}

/**
 * Messages and deletions after a counter value, in the order of their latest change. Messages that
 * never changed stand in `messages_live` under that order already, all others in `messages_changed`.
 */
function updatesQuery(db: Connection, assemble: Assemble) {
  const created = db.query<ViewRow>(
    `SELECT ${VIEW} FROM ${JOINED} WHERE m.conversation_id = ?1 AND m.deleted_at IS NULL
     AND m.seq > ?3 AND m.version = m.seq AND ${NOT_HIDDEN} ORDER BY m.seq LIMIT ?4`,
  );
  const changed = db.query<ViewRow>(
    `SELECT ${VIEW} FROM ${JOINED} WHERE m.conversation_id = ?1 AND m.version > m.seq
     AND m.version > ?3 AND m.version <= ?5 AND (m.deleted_at IS NOT NULL OR ${NOT_HIDDEN})
     ORDER BY m.version LIMIT ?4`,
  );
  const hidden = db.query<{ uuid: string }>(
    `SELECT m.uuid FROM hidden h CROSS JOIN messages m
       ON m.conversation_id = h.conversation_id AND m.seq = h.seq AND m.deleted_at IS NULL
     WHERE h.account_id = ?2 AND h.conversation_id = ?1 AND h.at_seq >= ?3 AND h.at_seq <= ?4`,
  );
  const streaming = db.query<ViewRow>(
    `SELECT ${VIEW} FROM turns t JOIN messages m ON m.id = t.message_id
       JOIN accounts a ON a.id = m.sender_id JOIN conversations c ON c.id = m.conversation_id
     WHERE t.conversation_id = ?1 AND t.status = 'running' AND m.seq <= ?3 AND m.version <= ?3
       AND m.deleted_at IS NULL AND ${NOT_HIDDEN}`,
  );
  const counter = db.query<{ seq: number }>("SELECT seq FROM counters WHERE conversation_id = ?");
  const last = Number.MAX_SAFE_INTEGER;
  const groupChanges = changesSince(db);
  const shownChanges = changeViews(db);

  return ({ conversationId, viewerId, since, limit }: UpdatesQuery): Updates => {
    const now = counter.get(conversationId)?.seq ?? 0;
    const rows = [
      ...created.all(conversationId, viewerId, since, limit + 1),
      ...changed.all(conversationId, viewerId, since, limit + 1, last),
    ];
    const changes = groupChanges(conversationId, since, limit + 1);
    const { seq = now, has_more } = pageEnd(rows, changes, limit);
    const page = rows
      .filter((row) => row.version <= seq)
      .sort((one, other) => one.version - other.version);
    if (has_more) {
      // One deletion of many messages is one change: a page never ends inside it.
      const taken = new Set(page.map((row) => row.id));
      const group = changed.all(conversationId, viewerId, seq - 1, -1, seq);
      page.push(...group.filter((row) => !taken.has(row.id)));
    }
    // A message that streams grows without being counted: whoever was away has less of it.
    if (!has_more) page.push(...streaming.all(conversationId, viewerId, since));
    const gone = page.filter((row) => row.deleted_at !== null).map((row) => row.uuid);
    const hiddenNow = hidden.all(conversationId, viewerId, since, has_more ? seq : last);
    return {
      messages: assemble(
        page.filter((row) => row.deleted_at === null),
        viewerId,
      ),
      deleted_ids: [...gone, ...hiddenNow.map((row) => row.uuid)],
      changes: shownChanges(changes.filter((change) => change.seq <= seq)),
      seq,
      has_more,
    };
  };
}

export function messageWrites(db: Connection): Writes {
  const counters = db.query<{ seq: number; humans: number; agents: number }>(
    "SELECT seq, humans, agents FROM counters WHERE conversation_id = ?",
  );
  const count = db.change(
    `UPDATE counters SET seq = ?2, humans = ?3, agents = ?4, updated_at = ?5
     WHERE conversation_id = ?1`,
  );
  const insert = db.change(
    `INSERT INTO messages (uuid, conversation_id, seq, version, sender_id, by_agent, human_n, agent_n,
       content, client_msg_id, reply_to_id, mentions, turn, created_at, finalized_at, action)
     VALUES (?1, ?2, ?3, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
     ON CONFLICT (conversation_id, sender_id, client_msg_id) WHERE client_msg_id IS NOT NULL
     DO NOTHING`,
  );
  const readAll = db.change(
    `UPDATE members SET last_read_seq = ?3, read_humans = ?4, read_agents = ?5, unread_mentions = 0
     WHERE conversation_id = ?1 AND account_id = ?2`,
  );
  const advance = counterStep(db);
  const edit = db.change(
    "UPDATE messages SET content = ?2, mentions = ?3, edited_at = ?4, version = ?5 WHERE id = ?1",
  );
  const reindex = db.change("INSERT INTO search_changes (message_id) VALUES (?)");
  const remove = db.change(
    `UPDATE messages SET content = '', mentions = NULL, turn = NULL, reactions = 0, action = NULL,
       uses = 0, deleted_at = ?2, version = ?3 WHERE id = ?1`,
  );
  const removeReactions = db.change("DELETE FROM reactions WHERE message_id = ?");
  const removeUses = db.change("DELETE FROM component_uses WHERE message_id = ?");
  const discount = db.change(
    `UPDATE members SET read_humans = read_humans + ?3, read_agents = read_agents + ?4
     WHERE conversation_id = ?1 AND last_read_seq < ?2 AND NOT EXISTS (
       SELECT 1 FROM hidden h WHERE h.account_id = members.account_id
       AND h.conversation_id = ?1 AND h.seq = ?2)`,
  );
  const hide = db.change(
    `INSERT INTO hidden (account_id, conversation_id, seq, at_seq, own_seq)
     SELECT ?1, ?2, ?3, seq, ?4 FROM counters WHERE conversation_id = ?2 ON CONFLICT DO NOTHING`,
  );
  const ownCounter = db.query<{ own_seq: number }>("SELECT own_seq FROM accounts WHERE id = ?");
  const countOwn = db.change("UPDATE accounts SET own_seq = ?2 WHERE id = ?1");
  const discountOne = db.change(
    `UPDATE members SET read_humans = read_humans + ?4, read_agents = read_agents + ?5
     WHERE conversation_id = ?1 AND account_id = ?2 AND last_read_seq < ?3`,
  );
  const mentions = mentionWrites(db);

  return {
    insertMessage: (message) => {
      const { conversation, sender, content, client_msg_id, reply_to_id, at } = message;
      const before = counters.get(conversation.id);
      if (!before) throw new Error(`conversation ${conversation.id} has no counters`);
      const human = sender.kind === "human" ? 1 : 0;
      const seq = before.seq + 1;
      const humans = before.humans + human;
      const agents = before.agents + 1 - human;
      const uuid = Bun.randomUUIDv7();
      const { changes } = insert.run(
        uuid,
        conversation.id,
        seq,
        sender.id,
        1 - human,
        humans,
        agents,
        content,
        client_msg_id,
        reply_to_id,
        storeMentions(message.mentions),
        message.turn ? JSON.stringify(message.turn) : null,
        at,
        message.turn ? null : at,
        message.action ? JSON.stringify(storedAction(message)) : null,
      );
      if (changes === 0) return null;
      count.run(conversation.id, seq, humans, agents, at);
      readAll.run(conversation.id, sender.id, seq, humans, agents);
      if (message.mentions.length > 0) {
        mentions.add(message.mentions, conversation.id, seq, sender.id);
      }
      return newMessage(message, uuid, seq);
    },
    editMessage: (message, content, newMentions, at) => {
      const version = advance(message.conversation_id);
      edit.run(message.id, content, storeMentions(newMentions), at, version);
      const { conversation_id, seq, sender_id } = message;
      const gone = message.mentions.filter((name) => !newMentions.includes(name));
      const come = newMentions.filter((name) => !message.mentions.includes(name));
      if (gone.length > 0) mentions.remove(gone, conversation_id, seq);
      if (come.length > 0) mentions.add(come, conversation_id, seq, sender_id);
      reindex.run(message.id);
      return version;
    },
    deleteMessages: (messages, at) => {
      const version = advance((messages[0] as MessageRecord).conversation_id);
      for (const message of messages) {
        const human = message.sender_kind === "human" ? 1 : 0;
        discount.run(message.conversation_id, message.seq, human, 1 - human);
        if (message.mentions.length > 0) {
          mentions.remove(message.mentions, message.conversation_id, message.seq);
        }
        removeReactions.run(message.id);
        removeUses.run(message.id);
        remove.run(message.id, at, version);
        reindex.run(message.id);
      }
      return version;
    },
    hideMessages: (messages, accountId) => {
      const own_seq = (ownCounter.get(accountId)?.own_seq ?? 0) + 1;
      let hidden = 0;
      for (const { conversation_id, seq, sender_kind } of messages) {
        if (hide.run(accountId, conversation_id, seq, own_seq).changes === 0) continue;
        hidden++;
        const human = sender_kind === "human" ? 1 : 0;
        discountOne.run(conversation_id, accountId, seq, human, 1 - human);
        mentions.removeOne(accountId, conversation_id, seq);
      }
      if (hidden === 0) return null;
      countOwn.run(accountId, own_seq);
      return own_seq;
    },
    useComponent: useComponent(db),
  };
}

function useComponent(db: Connection): Writes["useComponent"] {
  const advance = counterStep(db);
  const forget = db.change(
    "DELETE FROM component_uses WHERE message_id = ? AND account_id = ? AND token = ?",
  );
  const insert = db.change(
    "INSERT INTO component_uses (message_id, account_id, token, used_at) VALUES (?, ?, ?, ?)",
  );
  const prune = db.change(
    `DELETE FROM component_uses WHERE message_id = ?1 AND id NOT IN (
       SELECT id FROM component_uses WHERE message_id = ?1 ORDER BY id DESC LIMIT ${KEPT_USES})`,
  );
  const mark = db.change(
    `UPDATE messages SET version = coalesce(?2, version),
       uses = (SELECT count(*) FROM component_uses WHERE message_id = ?1) WHERE id = ?1`,
  );
  return (message, { token, by, at }) => {
    forget.run(message.id, by.id, token);
    insert.run(message.id, by.id, token, at);
    prune.run(message.id);
    const version = message.finalized ? advance(message.conversation_id) : null;
    mark.run(message.id, version);
    return version;
  };
}

/** Takes a conversation's counter one up and returns the new value. */
export function counterStep(db: Connection) {
  const step = db.change<{ seq: number }>(
    "UPDATE counters SET seq = seq + 1 WHERE conversation_id = ? RETURNING seq",
  );
  return (conversationId: number): number => {
    const row = step.get(conversationId);
    if (!row) throw new Error(`conversation ${conversationId} has no counters`);
    return row.seq;
  };
}

export function mentionWrites(db: Connection) {
  const insert = db.change<{ account_id: number }>(
    `INSERT INTO mentions (account_id, conversation_id, seq)
     SELECT a.id, ?2, ?3 FROM json_each(?1) j JOIN accounts a ON a.username = j.value
     WHERE a.id <> ?4 AND NOT EXISTS (SELECT 1 FROM hidden h WHERE h.account_id = a.id
       AND h.conversation_id = ?2 AND h.seq = ?3) ON CONFLICT DO NOTHING RETURNING account_id`,
  );
  const remove = db.change<{ account_id: number }>(
    `DELETE FROM mentions WHERE conversation_id = ?2 AND seq = ?3 AND account_id IN
       (SELECT a.id FROM json_each(?1) j JOIN accounts a ON a.username = j.value)
     RETURNING account_id`,
  );
  const removeOne = db.change<{ account_id: number }>(
    `DELETE FROM mentions WHERE account_id = ? AND conversation_id = ? AND seq = ?
     RETURNING account_id`,
  );
  const shift = db.change(
    `UPDATE members SET unread_mentions = unread_mentions + ?4
     WHERE conversation_id = ?1 AND account_id = ?2 AND last_read_seq < ?3`,
  );
  const shiftAll = (
    rows: { account_id: number }[],
    conversationId: number,
    seq: number,
    by: number,
  ) => {
    for (const { account_id } of rows) shift.run(conversationId, account_id, seq, by);
  };
  return {
    /** A sender's mention of themselves is never unread. */
    add: (usernames: readonly string[], conversationId: number, seq: number, senderId: number) =>
      shiftAll(
        insert.all(JSON.stringify(usernames), conversationId, seq, senderId),
        conversationId,
        seq,
        1,
      ),
    remove: (usernames: readonly string[], conversationId: number, seq: number) =>
      shiftAll(remove.all(JSON.stringify(usernames), conversationId, seq), conversationId, seq, -1),
    removeOne: (accountId: number, conversationId: number, seq: number) =>
      shiftAll(removeOne.all(accountId, conversationId, seq), conversationId, seq, -1),
  };
}
