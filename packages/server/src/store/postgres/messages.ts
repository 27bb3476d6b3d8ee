import type { ComponentUse, Message, ReactionSummary, Turn } from "@parley/protocol";
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
import type { Updates, UpdatesQuery } from "../updates.ts";
import { accountsById } from "./accounts.ts";
import { changesSince, shownChanges } from "./group-changes.ts";
import { reindex, searchVector } from "./search.ts";
import { type Batch, list, type Methods, NOW, type Unit } from "./unit.ts";

const VIEW = `m.id, m.uuid, m.conversation_id, c.uuid AS conversation_uuid, m.seq, m.version,
  m.content, m.client_msg_id, m.reply_to_id, m.mentions, m.turn, m.reactions, m.action, m.uses,
  m.created_at, m.edited_at, m.finalized_at, m.deleted_at, a.username, a.kind, a.display_name,
  a.version AS sender_version`;
const JOINED = `messages m JOIN accounts a ON a.id = m.sender_id
  JOIN conversations c ON c.id = m.conversation_id`;
const NOT_HIDDEN = `NOT EXISTS (SELECT 1 FROM hidden h WHERE h.account_id = $2
  AND h.conversation_id = m.conversation_id AND h.seq = m.seq)`;
const LIVE = `SELECT ${VIEW} FROM ${JOINED}
  WHERE m.conversation_id = $1 AND m.deleted_at IS NULL AND ${NOT_HIDDEN}`;
const LAST = Number.MAX_SAFE_INTEGER;

type ViewRow = MessageRow & { conversation_id: number };

/** Turns rows into messages as a viewer sees them. */
async function assemble(
  unit: Unit,
  rows: readonly ViewRow[],
  viewerId: number,
): Promise<Message[]> {
  const reacted = rows.filter((row) => row.reactions > 0).map((row) => row.id);
  const streaming = rows.filter((row) => row.finalized_at === null).map((row) => row.id);
  const used = rows.filter((row) => row.uses > 0 && row.finalized_at !== null);
  const actors = rows.flatMap(({ action }) => (action ? [action.by] : []));
  const [summaries, texts, uses, accounts] = await Promise.all([
    reactionSummaries(unit, reacted, viewerId),
    streamedTexts(unit, streaming),
    componentUses(
      unit,
      used.map((row) => row.id),
    ),
    accountsById(unit, actors),
  ]);
  return rows.map((row) => {
    const { id, action } = row;
    const by = action && accounts.get(action.by);
    return toMessage(row, {
      content: row.finalized_at === null ? (texts.get(id) ?? "") : row.content,
      reactions: summaries.get(id) ?? [],
      action: action && by ? { ...action, by } : null,
      uses: uses.get(id) ?? [],
    });
  });
}

async function componentUses(
  unit: Unit,
  ids: readonly number[],
): Promise<Map<number, ComponentUse[]>> {
  if (ids.length === 0) return new Map();
  const rows = await unit.all<UseRow>(
    `SELECT u.message_id, u.token, u.used_at, a.username, a.kind, a.display_name, a.version
     FROM component_uses u JOIN accounts a ON a.id = u.account_id
     WHERE u.message_id = ANY($1::bigint[]) ORDER BY u.id`,
    list(ids),
  );
  const byMessage = Map.groupBy(rows, (row) => row.message_id);
  return new Map([...byMessage].map(([id, uses]) => [id, uses.map(toUse)]));
}

async function reactionSummaries(
  unit: Unit,
  ids: readonly number[],
  viewerId: number,
): Promise<Map<number, ReactionSummary[]>> {
  const summaries = new Map<number, ReactionSummary[]>();
  if (ids.length === 0) return summaries;
  const rows = await unit.all<ReactionSummary & { message_id: number }>(
    `SELECT message_id, emoji, count(*) AS count, bool_or(account_id = $2) AS reacted
     FROM reactions WHERE message_id = ANY($1::bigint[])
     GROUP BY message_id, emoji ORDER BY min(id)`,
    list(ids),
    viewerId,
  );
  for (const { message_id, ...summary } of rows) {
    summaries.set(message_id, [...(summaries.get(message_id) ?? []), summary]);
  }
  return summaries;
}

/** What messages that stream have so far. */
export async function streamedTexts(
  unit: Unit,
  ids: readonly number[],
): Promise<Map<number, string>> {
  const texts = new Map<number, string>();
  if (ids.length === 0) return texts;
  const rows = await unit.all<{ message_id: number; text: string }>(
    `SELECT message_id, text FROM chunks WHERE message_id = ANY($1::bigint[])
     ORDER BY message_id, byte_offset`,
    list(ids),
  );
  for (const { message_id, text } of rows) {
    texts.set(message_id, (texts.get(message_id) ?? "") + text);
  }
  return texts;
}

export const storeMentions = (mentions: readonly string[]) =>
  mentions.length === 0 ? null : mentions;

/** The latest message of each conversation that a viewer can see. */
export async function latestMessages(
  unit: Unit,
  conversationIds: readonly number[],
  viewerId: number,
): Promise<Map<number, Message>> {
  if (conversationIds.length === 0) return new Map();
  const rows = await unit.all<ViewRow>(
    `SELECT ${VIEW} FROM unnest($1::bigint[]) AS k(id)
     JOIN LATERAL (SELECT m.* FROM messages m WHERE m.conversation_id = k.id
       AND m.deleted_at IS NULL AND ${NOT_HIDDEN} ORDER BY m.seq DESC LIMIT 1) m ON true
     JOIN accounts a ON a.id = m.sender_id JOIN conversations c ON c.id = m.conversation_id`,
    list(conversationIds),
    viewerId,
  );
  const messages = await assemble(unit, rows, viewerId);
  return new Map(rows.map((row, place) => [row.conversation_id, messages[place] as Message]));
}

type Reads = Methods<
  | "message"
  | "messageViews"
  | "sentBefore"
  | "history"
  | "updates"
  | "hiddenSince"
  | "isHidden"
  | "contextMessages"
>;
type Writes = Methods<
  "insertMessage" | "editMessage" | "deleteMessages" | "hideMessages" | "useComponent"
>;

type RecordRow = Omit<MessageRecord, "mentions"> & { mentions: string[] | null };

export const messageReads: Reads = {
  message: async (unit, uuid) => {
    const place = await unit.get<{ conversation_id: number }>(
      "SELECT conversation_id FROM messages WHERE uuid = $1",
      uuid,
    );
    if (!place) return null;
    await unit.own(place.conversation_id);
    const row = await unit.get<RecordRow>(
      `SELECT m.id, m.uuid, m.conversation_id, c.uuid AS conversation_uuid, m.seq, m.sender_id,
              a.owner_id AS sender_owner_id, a.kind AS sender_kind, m.mentions,
              m.finalized_at IS NOT NULL AS finalized, m.deleted_at IS NOT NULL AS deleted
       FROM ${JOINED} WHERE m.uuid = $1`,
      uuid,
    );
    return row && { ...row, mentions: row.mentions ?? [] };
  },
  messageViews: async (unit, uuids, viewerId) =>
    assemble(
      unit,
      await unit.all<ViewRow>(
        `SELECT ${VIEW} FROM unnest($1::uuid[]) WITH ORDINALITY AS k(uuid, place)
           JOIN messages m ON m.uuid = k.uuid JOIN accounts a ON a.id = m.sender_id
           JOIN conversations c ON c.id = m.conversation_id
         WHERE m.deleted_at IS NULL AND ${NOT_HIDDEN} ORDER BY k.place`,
        list(uuids),
        viewerId,
      ),
      viewerId,
    ),
  sentBefore: async (unit, conversationId, senderId, clientMsgId) => {
    const row = await unit.get<{ uuid: string }>(
      `SELECT uuid FROM messages
       WHERE conversation_id = $1 AND sender_id = $2 AND client_msg_id = $3`,
      conversationId,
      senderId,
      clientMsgId,
    );
    return row?.uuid ?? null;
  },
  hiddenSince: async (unit, accountId, since) => {
    const [own_seq, rows] = await Promise.all([
      ownCounter(unit, accountId),
      since === undefined
        ? []
        : unit.all<HiddenRow>(
            `SELECT c.uuid AS conversation_id, m.uuid AS id, h.own_seq FROM hidden h
             JOIN messages m ON m.conversation_id = h.conversation_id AND m.seq = h.seq
             JOIN conversations c ON c.id = h.conversation_id
             WHERE h.account_id = $1 AND h.own_seq > $2
             ORDER BY h.own_seq LIMIT ${HIDDEN_PER_PAGE + 1}`,
            accountId,
            since,
          ),
    ]);
    return toHidden(rows, own_seq);
  },
  isHidden: async (unit, message, accountId) =>
    (await unit.get(
      "SELECT 1 FROM hidden WHERE account_id = $1 AND conversation_id = $2 AND seq = $3",
      accountId,
      message.conversation_id,
      message.seq,
    )) !== null,
  history: async (unit, { conversationId, viewerId, from, limit }: HistoryQuery) => {
    const forward = from?.direction === "newer";
    const rows = await unit.all<ViewRow>(
      forward
        ? `${LIVE} AND m.seq > $3 ORDER BY m.seq LIMIT $4`
        : `${LIVE} AND m.seq < $3 ORDER BY m.seq DESC LIMIT $4`,
      conversationId,
      viewerId,
      from?.seq ?? LAST,
      limit + 1,
    );
    const items = rows.slice(0, limit);
    if (!forward) items.reverse();
    return { items: await assemble(unit, items, viewerId), has_more: rows.length > limit };
  },
  updates,
  contextMessages: async (unit, { conversationId, viewerId, upTo, answers, limit }) => {
    const [later, rows] = await Promise.all([
      unit.all<ViewRow>(
        `${LIVE} AND m.seq > $3 AND m.seq <= $4 AND m.finalized_at IS NOT NULL AND m.sender_id = $5
         AND EXISTS (SELECT 1 FROM turns t JOIN messages g ON g.id = t.trigger_id
           WHERE t.message_id = m.id AND g.seq < $6) ORDER BY m.seq DESC`,
        conversationId,
        viewerId,
        upTo,
        answers.upTo,
        answers.agentId,
        answers.toBefore,
      ),
      unit.all<ViewRow>(
        `${LIVE} AND m.seq <= $3 AND m.finalized_at IS NOT NULL ORDER BY m.seq DESC LIMIT $4`,
        conversationId,
        viewerId,
        upTo,
        limit,
      ),
    ]);
    return assemble(unit, [...later, ...rows], viewerId);
  },
};

const CREATED = `${LIVE} AND m.seq > $3 AND m.version = m.seq ORDER BY m.seq LIMIT $4`;
const CHANGED = `SELECT ${VIEW} FROM ${JOINED} WHERE m.conversation_id = $1 AND m.version > m.seq
  AND m.version > $3 AND m.version <= $5 AND (m.deleted_at IS NOT NULL OR ${NOT_HIDDEN})
  ORDER BY m.version LIMIT $4`;
const STREAMING = `SELECT ${VIEW} FROM turns t JOIN messages m ON m.id = t.message_id
    JOIN accounts a ON a.id = m.sender_id JOIN conversations c ON c.id = m.conversation_id
  WHERE t.conversation_id = $1 AND t.status = 'running' AND m.seq <= $3 AND m.version <= $3
    AND m.deleted_at IS NULL AND ${NOT_HIDDEN}`;
const HIDDEN = `SELECT m.uuid FROM hidden h JOIN messages m
    ON m.conversation_id = h.conversation_id AND m.seq = h.seq AND m.deleted_at IS NULL
  WHERE h.account_id = $2 AND h.conversation_id = $1 AND h.at_seq >= $3 AND h.at_seq <= $4`;

/** Messages and deletions after a counter value, in the order of their latest change. */
async function updates(
  unit: Unit,
  { conversationId, viewerId, since, limit }: UpdatesQuery,
): Promise<Updates> {
  const [counter, created, changed, groupChanges] = await Promise.all([
    unit.get<{ seq: number }>(
      "SELECT seq FROM counters WHERE conversation_id = $1",
      conversationId,
    ),
    unit.all<ViewRow>(CREATED, conversationId, viewerId, since, limit + 1),
    unit.all<ViewRow>(CHANGED, conversationId, viewerId, since, limit + 1, LAST),
    changesSince(unit, conversationId, since, limit + 1),
  ]);
  const rows = [...created, ...changed];
  const { seq = counter?.seq ?? 0, has_more } = pageEnd(rows, groupChanges, limit);
  const page = rows
    .filter((row) => row.version <= seq)
    .sort((one, other) => one.version - other.version);
  if (has_more) {
    // One deletion of many messages is one change: a page never ends inside it.
    const taken = new Set(page.map((row) => row.id));
    const group = await unit.all<ViewRow>(CHANGED, conversationId, viewerId, seq - 1, null, seq);
    page.push(...group.filter((row) => !taken.has(row.id)));
  }
  // A message that streams grows without being counted: whoever was away has less of it.
  if (!has_more) {
    page.push(...(await unit.all<ViewRow>(STREAMING, conversationId, viewerId, since)));
  }
  const gone = page.filter((row) => row.deleted_at !== null).map((row) => row.uuid);
  const upTo = has_more ? seq : LAST;
  const hidden = await unit.all<{ uuid: string }>(HIDDEN, conversationId, viewerId, since, upTo);
  const live = page.filter((row) => row.deleted_at === null);
  return {
    messages: await assemble(unit, live, viewerId),
    deleted_ids: [...gone, ...hidden.map((row) => row.uuid)],
    changes: await shownChanges(
      unit,
      groupChanges.filter((change) => change.seq <= seq),
    ),
    seq,
    has_more,
  };
}

interface NewRow {
  uuid: string;
  conversation_id: number;
  sender_id: number;
  by_agent: boolean;
  content: string;
  client_msg_id: string | null;
  reply_to_id: string | null;
  mentions: readonly string[] | null;
  turn: Turn | null;
  action: StoredAction | null;
  at: number;
  words: string | null;
}

/**
 * The whole of many sends as one statement: counters, messages, what their senders have read, and
 * the words to find them by. No two of them are of one conversation.
 */
const INSERT: Batch<NewRow, number | null> = {
  sql: `WITH given AS (
      SELECT * FROM jsonb_to_recordset($1::jsonb) AS g (uuid uuid, conversation_id bigint,
        sender_id bigint, by_agent boolean, content text, client_msg_id text, reply_to_id uuid,
        mentions jsonb, turn jsonb, action jsonb, at bigint, words text)
    ), counted AS (
      UPDATE counters k SET seq = k.seq + 1, updated_at = g.at, changed_at = ${NOW},
        humans = k.humans + CASE WHEN g.by_agent THEN 0 ELSE 1 END,
        agents = k.agents + CASE WHEN g.by_agent THEN 1 ELSE 0 END
      FROM given g WHERE k.conversation_id = g.conversation_id AND (g.client_msg_id IS NULL
        OR NOT EXISTS (SELECT 1 FROM messages m WHERE m.conversation_id = g.conversation_id
          AND m.sender_id = g.sender_id AND m.client_msg_id = g.client_msg_id))
      RETURNING k.conversation_id, k.seq, k.humans, k.agents
    ), inserted AS (
      INSERT INTO messages (uuid, conversation_id, seq, version, sender_id, by_agent, human_n,
        agent_n, content, client_msg_id, reply_to_id, mentions, turn, action, created_at,
        finalized_at)
      SELECT g.uuid, g.conversation_id, n.seq, n.seq, g.sender_id, g.by_agent, n.humans, n.agents,
        g.content, g.client_msg_id, g.reply_to_id, g.mentions, g.turn, g.action, g.at,
        CASE WHEN g.turn IS NULL THEN g.at END
      FROM given g JOIN counted n ON n.conversation_id = g.conversation_id
      RETURNING id, conversation_id
    ), seen AS (
      UPDATE members b SET last_read_seq = n.seq, read_humans = n.humans, read_agents = n.agents,
        unread_mentions = 0
      FROM given g JOIN counted n ON n.conversation_id = g.conversation_id
      WHERE b.conversation_id = g.conversation_id AND b.account_id = g.sender_id
    ), indexed AS (
      INSERT INTO search (message_id, conversation_id, words)
      SELECT i.id, i.conversation_id, g.words::tsvector FROM inserted i
      JOIN given g ON g.conversation_id = i.conversation_id WHERE g.words IS NOT NULL
    )
    SELECT conversation_id, seq FROM counted`,
  writes: true,
  values: (rows) => [rows],
  results: (found: readonly { conversation_id: number; seq: number }[], rows) => {
    const seqs = new Map(found.map((row) => [row.conversation_id, row.seq]));
    return rows.map((row) => seqs.get(row.conversation_id) ?? null);
  },
};

export const messageWrites: Writes = {
  insertMessage: async (unit, message) => {
    const { conversation, sender, content, turn = null, at } = message;
    await unit.own(conversation.id);
    const uuid = Bun.randomUUIDv7();
    const seq = await unit.together(INSERT, {
      uuid,
      conversation_id: conversation.id,
      sender_id: sender.id,
      by_agent: sender.kind === "agent",
      content,
      client_msg_id: message.client_msg_id,
      reply_to_id: message.reply_to_id,
      mentions: storeMentions(message.mentions),
      turn,
      action: storedAction(message),
      at,
      words: turn ? null : searchVector(conversation.id, content),
    });
    if (seq === null) return null;
    if (message.mentions.length > 0) {
      await mentionWrites.add(unit, message.mentions, conversation.id, seq, sender.id);
    }
    return newMessage(message, uuid, seq);
  },
  editMessage: async (unit, message, content, mentions, at) => {
    const { id, conversation_id, seq, sender_id } = message;
    const version = await counterStep(unit, conversation_id);
    await unit.change(
      `UPDATE messages SET content = $2, mentions = $3, edited_at = $4, version = $5 WHERE id = $1`,
      id,
      content,
      storeMentions(mentions),
      at,
      version,
    );
    const gone = message.mentions.filter((name) => !mentions.includes(name));
    const come = mentions.filter((name) => !message.mentions.includes(name));
    if (gone.length > 0) await mentionWrites.remove(unit, gone, conversation_id, seq);
    if (come.length > 0) await mentionWrites.add(unit, come, conversation_id, seq, sender_id);
    await reindex(unit, id, conversation_id, content);
    return version;
  },
  deleteMessages: async (unit, messages, at) => {
    const version = await counterStep(unit, (messages[0] as MessageRecord).conversation_id);
    for (const message of messages) await deleteOne(unit, message, at, version);
    return version;
  },
  hideMessages: async (unit, messages, accountId) => {
    for (const { conversation_id } of messages) await unit.own(conversation_id);
    await unit.ownRow("accounts", accountId);
    const own_seq = (await ownCounter(unit, accountId)) + 1;
    let hidden = 0;
    for (const { conversation_id, seq, sender_kind } of messages) {
      const { count } = await unit.change(
        `INSERT INTO hidden (account_id, conversation_id, seq, at_seq, own_seq)
         SELECT $1, $2, $3, seq, $4 FROM counters WHERE conversation_id = $2
         ON CONFLICT DO NOTHING`,
        accountId,
        conversation_id,
        seq,
        own_seq,
      );
      if (count === 0) continue;
      hidden++;
      const human = sender_kind === "human" ? 1 : 0;
      await unit.change(
        `UPDATE members SET read_humans = read_humans + $4, read_agents = read_agents + $5
         WHERE conversation_id = $1 AND account_id = $2 AND last_read_seq < $3`,
        conversation_id,
        accountId,
        seq,
        human,
        1 - human,
      );
      await mentionWrites.removeOne(unit, accountId, conversation_id, seq);
    }
    if (hidden === 0) return null;
    await unit.change("UPDATE accounts SET own_seq = $2 WHERE id = $1", accountId, own_seq);
    return own_seq;
  },
  useComponent: async (unit, { id, conversation_id, finalized }, { token, by, at }) => {
    await unit.own(conversation_id);
    await unit.change(
      "DELETE FROM component_uses WHERE message_id = $1 AND account_id = $2 AND token = $3",
      id,
      by.id,
      token,
    );
    await unit.change(
      `INSERT INTO component_uses (message_id, account_id, token, used_at)
       VALUES ($1, $2, $3, $4)`,
      id,
      by.id,
      token,
      at,
    );
    await unit.change(
      `DELETE FROM component_uses WHERE message_id = $1 AND id NOT IN (
         SELECT id FROM component_uses WHERE message_id = $1 ORDER BY id DESC LIMIT ${KEPT_USES})`,
      id,
    );
    const version = finalized ? await counterStep(unit, conversation_id) : null;
    await unit.change(
      `UPDATE messages SET version = coalesce($2::bigint, version),
         uses = (SELECT count(*) FROM component_uses WHERE message_id = $1) WHERE id = $1`,
      id,
      version,
    );
    return version;
  },
};

async function ownCounter(unit: Unit, accountId: number): Promise<number> {
  const row = await unit.get<{ own_seq: number }>(
    "SELECT own_seq FROM accounts WHERE id = $1",
    accountId,
  );
  return row?.own_seq ?? 0;
}

async function deleteOne(
  unit: Unit,
  message: MessageRecord,
  at: number,
  version: number,
): Promise<void> {
  const { id, conversation_id, seq } = message;
  const human = message.sender_kind === "human" ? 1 : 0;
  if (message.mentions.length > 0) {
    await mentionWrites.remove(unit, message.mentions, conversation_id, seq);
  }
  await Promise.all([
    unit.change(
      `UPDATE members SET read_humans = read_humans + $3, read_agents = read_agents + $4
       WHERE conversation_id = $1 AND last_read_seq < $2 AND NOT EXISTS (
         SELECT 1 FROM hidden h WHERE h.account_id = members.account_id
         AND h.conversation_id = $1 AND h.seq = $2)`,
      conversation_id,
      seq,
      human,
      1 - human,
    ),
    unit.change("DELETE FROM reactions WHERE message_id = $1", id),
    unit.change("DELETE FROM component_uses WHERE message_id = $1", id),
    unit.change(
      `UPDATE messages SET content = '', mentions = NULL, turn = NULL, reactions = 0,
         action = NULL, uses = 0, deleted_at = $2, version = $3 WHERE id = $1`,
      id,
      at,
      version,
    ),
    reindex(unit, id, conversation_id, null),
  ]);
}

/** Takes a conversation's counter one up and returns the new value. */
export async function counterStep(unit: Unit, conversationId: number): Promise<number> {
  await unit.own(conversationId);
  const [row] = await unit.change<{ seq: number }>(
    `UPDATE counters SET seq = seq + 1, changed_at = ${NOW} WHERE conversation_id = $1 RETURNING seq`,
    conversationId,
  );
  if (!row) throw new Error(`conversation ${conversationId} has no counters`);
  return row.seq;
}

/** Adds to the unread mentions of those who have not read so far. */
async function shift(
  unit: Unit,
  rows: readonly { account_id: number }[],
  conversationId: number,
  seq: number,
  by: number,
): Promise<void> {
  if (rows.length === 0) return;
  await unit.change(
    `UPDATE members SET unread_mentions = unread_mentions + $4
     WHERE conversation_id = $1 AND account_id = ANY($2::bigint[]) AND last_read_seq < $3`,
    conversationId,
    list(rows.map((row) => row.account_id)),
    seq,
    by,
  );
}

const NAMED = `SELECT a.id FROM jsonb_array_elements_text($1::jsonb) AS n(username)
  JOIN accounts a ON a.username = n.username`;

export const mentionWrites = {
  /** A sender's mention of themselves is never unread. */
  add: async (
    unit: Unit,
    usernames: readonly string[],
    conversationId: number,
    seq: number,
    senderId: number,
  ) => {
    const rows = await unit.change<{ account_id: number }>(
      `INSERT INTO mentions (account_id, conversation_id, seq)
       SELECT a.id, $2, $3 FROM (${NAMED}) a
       WHERE a.id <> $4 AND NOT EXISTS (SELECT 1 FROM hidden h WHERE h.account_id = a.id
         AND h.conversation_id = $2 AND h.seq = $3) ON CONFLICT DO NOTHING RETURNING account_id`,
      usernames,
      conversationId,
      seq,
      senderId,
    );
    await shift(unit, rows, conversationId, seq, 1);
  },
  remove: async (unit: Unit, usernames: readonly string[], conversationId: number, seq: number) => {
    const rows = await unit.change<{ account_id: number }>(
      `DELETE FROM mentions WHERE conversation_id = $2 AND seq = $3 AND account_id IN (${NAMED})
       RETURNING account_id`,
      usernames,
      conversationId,
      seq,
    );
    await shift(unit, rows, conversationId, seq, -1);
  },
  removeOne: async (unit: Unit, accountId: number, conversationId: number, seq: number) => {
    const rows = await unit.change<{ account_id: number }>(
      `DELETE FROM mentions WHERE account_id = $1 AND conversation_id = $2 AND seq = $3
       RETURNING account_id`,
      accountId,
      conversationId,
      seq,
    );
    await shift(unit, rows, conversationId, seq, -1);
  },
};
