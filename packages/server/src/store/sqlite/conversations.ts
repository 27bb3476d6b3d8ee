import { type AccountRow, publicAccount } from "../../rules/accounts.ts";
import { NOBODY } from "../accounts.ts";
import type {
  ChatsQuery,
  ConversationReads,
  ConversationRecord,
  ConversationWrites,
  MemberRecord,
} from "../conversations.ts";
import { ACCOUNT, PUBLIC_ACCOUNT } from "../shared/accounts.ts";
import {
  blockOf,
  type ConversationRow,
  type MemberRow,
  pairKey,
  type ReadPositionRow,
  SHOWN_PARTICIPANTS,
  toConversation,
  toConversationDetail,
  toMember,
  toReadPositions,
  toSharedConversation,
} from "../shared/conversations.ts";
import type { Connection } from "./connection.ts";
import { latestMessage } from "./message-views.ts";

const VIEW = `SELECT c.id, c.uuid, c.kind, c.title, c.created_at, c.picture_id, k.seq, k.updated_at,
    k.participants AS participant_count, admin.username AS admin,
    by.username AS by_username, by.kind AS by_kind, by.display_name AS by_display_name,
    by.version AS by_version, by.erased_at AS by_erased_at,
    k.humans - me.read_humans AS unread_humans, k.agents - me.read_agents AS unread_agents,
    me.unread_mentions, me.last_read_seq,
    (SELECT own_seq FROM accounts WHERE id = ?1) AS own_seq
  FROM conversations c
  JOIN counters k ON k.conversation_id = c.id
  JOIN accounts by ON by.id = c.created_by
  LEFT JOIN accounts admin ON admin.id = c.admin_id
  LEFT JOIN members me ON me.conversation_id = c.id AND me.account_id = ?1`;

export function conversationReads(db: Connection): ConversationReads {
  const record = db.query<Omit<ConversationRecord, "joined"> & { joined: number }>(
    `SELECT c.id, c.uuid, c.kind, c.title, c.admin_id, c.closed_at, c.picture_id, k.seq,
            k.participants AS participant_count,
            k.agent_participants AS agent_count,
            EXISTS (SELECT 1 FROM members m WHERE m.conversation_id = c.id AND m.account_id = ?2)
              AS joined,
            ${blockOf("?2")}
     FROM conversations c JOIN counters k ON k.conversation_id = c.id WHERE c.uuid = ?1`,
  );
  const direct = db.query<{ id: number }>("SELECT id FROM conversations WHERE direct_pair = ?");
  const members = db.query<MemberRow>(
    `SELECT ${ACCOUNT}, m.always_on, m.last_read_seq FROM members m
     JOIN accounts a ON a.id = m.account_id WHERE m.conversation_id = ? ORDER BY m.position`,
  );
  const positions = db.query<ReadPositionRow>(
    `SELECT a.username, a.kind, m.last_read_seq FROM members m
     JOIN accounts a ON a.id = m.account_id
     WHERE m.conversation_id = ? ORDER BY m.position LIMIT ${SHOWN_PARTICIPANTS}`,
  );
  const among = db.query<{ username: string }>(
    `SELECT a.username FROM json_each(?2) j JOIN accounts a ON a.username = j.value
     JOIN members m ON m.conversation_id = ?1 AND m.account_id = a.id ORDER BY j.key`,
  );
  const counters = db.query<{ uuid: string; seq: number }>(
    `SELECT c.uuid, k.seq FROM members m JOIN conversations c ON c.id = m.conversation_id
     JOIN counters k ON k.conversation_id = m.conversation_id WHERE m.account_id = ?`,
  );
  const former = db.query<{ id: number; seq: number }>(
    `SELECT f.conversation_id AS id, k.seq FROM former_members f
     JOIN counters k ON k.conversation_id = f.conversation_id WHERE f.account_id = ?`,
  );
  const unread = db.query<{ count: number }>(
    `SELECT k.humans - m.read_humans + k.agents - m.read_agents AS count
     FROM members m JOIN counters k ON k.conversation_id = m.conversation_id
     WHERE m.conversation_id = ? AND m.account_id = ?`,
  );
  const memberRecords = (conversationId: number): MemberRecord[] =>
    members.all(conversationId).map(toMember);

  return {
    conversation: (uuid, viewerId) => {
      const row = record.get(uuid, viewerId);
      return row && { ...row, joined: row.joined === 1 };
    },
    directConversation: (pair) => direct.get(pairKey(pair))?.id ?? null,
    members: memberRecords,
    readPositions: (conversationId) => toReadPositions(positions.all(conversationId)),
    participantsAmong: (conversationId, usernames) =>
      among.all(conversationId, JSON.stringify(usernames)).map((row) => row.username),
    counters: (accountId) => counters.all(accountId),
    formerConversations: (accountId) => former.all(accountId),
    unreadCount: (conversationId, accountId) => unread.get(conversationId, accountId)?.count ?? 0,
    ...conversationViews(db, memberRecords),
  };
}

function conversationViews(db: Connection, members: (id: number) => MemberRecord[]) {
  const one = db.query<ConversationRow>(`${VIEW} WHERE c.id = ?2`);
  const list = db.query<ConversationRow>(
    `${VIEW} WHERE me.account_id IS NOT NULL AND (?2 IS NULL OR (k.updated_at, c.id) < (?2, ?3))
     ORDER BY k.updated_at DESC, c.id DESC LIMIT ?4`,
  );
  const shownRows = db.query<AccountRow>(
    `SELECT ${PUBLIC_ACCOUNT} FROM members m JOIN accounts a ON a.id = m.account_id
     WHERE m.conversation_id = ? ORDER BY m.position LIMIT ${SHOWN_PARTICIPANTS}`,
  );
  const shown = (conversationId: number) => shownRows.all(conversationId).map(publicAccount);
  const latest = latestMessage(db);

  const row = (conversationId: number, viewerId: number): ConversationRow => {
    const found = one.get(viewerId, conversationId);
    if (!found) throw new Error(`conversation ${conversationId} is missing`);
    return found;
  };

  return {
    conversationView: (id: number, viewerId: number) =>
      toConversation(row(id, viewerId), latest(id, viewerId), shown(id)),
    sharedConversation: (id: number) =>
      toSharedConversation(row(id, NOBODY), latest(id, NOBODY), shown(id)),
    conversationDetail: (id: number, viewerId: number) =>
      toConversationDetail(row(id, viewerId), latest(id, viewerId), members(id)),
    chats: ({ viewerId, after, limit }: ChatsQuery) =>
      list
        .all(viewerId, after?.updated_at ?? null, after?.id ?? null, limit)
        .map((each) => toConversation(each, latest(each.id, viewerId), shown(each.id))),
  };
}

export function conversationWrites(db: Connection): ConversationWrites {
  const insert = db.change<{ id: number }>(
    `INSERT INTO conversations (uuid, kind, title, direct_pair, created_by, admin_id, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id`,
  );
  const insertCounters = db.change(
    "INSERT INTO counters (conversation_id, updated_at) VALUES (?, ?)",
  );
  const lastPosition = db.query<{ position: number }>(
    `SELECT position FROM members WHERE conversation_id = ? ORDER BY position DESC LIMIT 1`,
  );
  const join = db.change(
    `INSERT INTO members (conversation_id, account_id, position, joined_at, last_read_seq,
       read_humans, read_agents)
     SELECT ?1, ?2, ?3, ?4, seq, humans, agents FROM counters WHERE conversation_id = ?1`,
  );
  const leave = db.change("DELETE FROM members WHERE conversation_id = ? AND account_id = ?");
  const keepFormer = db.change(
    "INSERT OR IGNORE INTO former_members (conversation_id, account_id) VALUES (?, ?)",
  );
  const dropFormer = db.change(
    "DELETE FROM former_members WHERE conversation_id = ? AND account_id = ?",
  );
  const countMembers = db.change(
    `UPDATE counters SET participants = (SELECT count(*) FROM members WHERE conversation_id = ?1),
       agent_participants = (SELECT count(*) FROM members m JOIN accounts a ON a.id = m.account_id
         WHERE m.conversation_id = ?1 AND a.kind = 'agent')
     WHERE conversation_id = ?1`,
  );
  const release = db.change("UPDATE conversations SET direct_pair = NULL WHERE id = ?");
  const admin = db.change("UPDATE conversations SET admin_id = ?2 WHERE id = ?1");
  const title = db.change("UPDATE conversations SET title = ?2 WHERE id = ?1");
  const close = db.change("UPDATE conversations SET closed_at = ?2 WHERE id = ?1");

  return {
    insertConversation: (conversation) => {
      const { uuid, kind, title: name, created_by, at } = conversation;
      const pair = conversation.direct ? pairKey(conversation.direct) : null;
      const adminId = kind === "group" ? created_by : null;
      const row = insert.get(uuid, kind, name, pair, created_by, adminId, at);
      if (!row) throw new Error("a conversation was not inserted");
      insertCounters.run(row.id, at);
      return row.id;
    },
    releasePair: (conversationId) => void release.run(conversationId),
    insertMembers: (conversationId, accountIds, at) => {
      let position = lastPosition.get(conversationId)?.position ?? 0;
      for (const accountId of accountIds) {
        join.run(conversationId, accountId, ++position, at);
        dropFormer.run(conversationId, accountId);
      }
      countMembers.run(conversationId);
    },
    deleteMembers: (conversationId, accountIds) => {
      for (const accountId of accountIds) {
        if (leave.run(conversationId, accountId).changes === 0) continue;
        keepFormer.run(conversationId, accountId);
      }
      countMembers.run(conversationId);
    },
    setAdmin: (conversationId, accountId) => void admin.run(conversationId, accountId),
    setTitle: (conversationId, name) => void title.run(conversationId, name),
    closeConversation: (conversationId, at) => void close.run(conversationId, at),
    markRead: markRead(db),
  };
}

/**
 * An unread count is the conversation's total of messages minus the member's total of read ones, so
 * its cost does not depend on the number of messages. Moving the read position sets the member's
 * total: the running total of the latest message up to that position, plus the later messages that
 * are deleted or hidden, which count as read.
 */
function markRead(db: Connection): ConversationWrites["markRead"] {
  const position = db.query<{ last_read_seq: number }>(
    "SELECT last_read_seq FROM members WHERE conversation_id = ? AND account_id = ?",
  );
  const latest = db.query<{ seq: number; human_n: number; agent_n: number }>(
    `SELECT seq, human_n, agent_n FROM messages
     WHERE conversation_id = ? AND seq <= ? AND deleted_at IS NULL ORDER BY seq DESC LIMIT 1`,
  );
  const goneAfter = db.query<{ humans: number; agents: number }>(
    `SELECT coalesce(sum(1 - by_agent), 0) AS humans, coalesce(sum(by_agent), 0) AS agents FROM (
       SELECT by_agent FROM messages
       WHERE conversation_id = ?1 AND seq > ?2 AND deleted_at IS NOT NULL AND NOT imported
       UNION ALL
       SELECT m.by_agent FROM hidden h CROSS JOIN messages m
         ON m.conversation_id = h.conversation_id AND m.seq = h.seq AND m.deleted_at IS NULL
       WHERE h.account_id = ?3 AND h.conversation_id = ?1 AND h.seq > ?2 AND NOT m.imported)`,
  );
  const update = db.change(
    `UPDATE members SET last_read_seq = ?3, read_humans = ?4, read_agents = ?5,
       unread_mentions = (SELECT count(*) FROM mentions
         WHERE account_id = ?2 AND conversation_id = ?1 AND seq > ?3)
     WHERE conversation_id = ?1 AND account_id = ?2`,
  );
  return (conversationId, accountId, seq) => {
    const before = position.get(conversationId, accountId);
    if (!before || before.last_read_seq >= seq) return false;
    const read = latest.get(conversationId, seq) ?? { seq: 0, human_n: 0, agent_n: 0 };
    const gone = goneAfter.get(conversationId, read.seq, accountId) ?? { humans: 0, agents: 0 };
    const humans = read.human_n + gone.humans;
    update.run(conversationId, accountId, seq, humans, read.agent_n + gone.agents);
    return true;
  };
}
