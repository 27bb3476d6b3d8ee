import { type AccountRow, publicAccount } from "../../rules/accounts.ts";
import { NOBODY } from "../accounts.ts";
import type {
  ChatsQuery,
  ConversationReads,
  ConversationRecord,
  ConversationWrites,
  MemberRecord,
} from "../conversations.ts";
import { PUBLIC_ACCOUNT } from "../shared/accounts.ts";
import {
  blockOf,
  CONVERSATION,
  CONVERSATION_VIEW,
  COUNTERS,
  type ConversationRow,
  FORMER_CONVERSATIONS,
  MEMBERS,
  type MemberRow,
  pairKey,
  READ_POSITIONS,
  type ReadPositionRow,
  SHOWN_PARTICIPANTS,
  toConversation,
  toConversationDetail,
  toMember,
  toReadPositions,
  toSharedConversation,
  UNREAD_COUNT,
} from "../shared/conversations.ts";
import type { Connection } from "./connection.ts";
import { latestMessage } from "./message-views.ts";

export function conversationReads(db: Connection): ConversationReads {
  const record = db.query<Omit<ConversationRecord, "joined"> & { joined: number }>(
    `SELECT ${CONVERSATION},
       EXISTS (SELECT 1 FROM members m WHERE m.conversation_id = c.id AND m.account_id = ?2)
         AS joined,
       ${blockOf("?2")}
     FROM conversations c JOIN counters k ON k.conversation_id = c.id WHERE c.uuid = ?1`,
  );
  const direct = db.query<{ id: number }>("SELECT id FROM conversations WHERE direct_pair = ?");
  const external = db.query<{ external_id: string; uuid: string }>(
    `SELECT c.external_id, c.uuid FROM json_each(?) j JOIN conversations c ON c.external_id = j.value`,
  );
  const members = db.query<MemberRow>(MEMBERS);
  const positions = db.query<ReadPositionRow>(READ_POSITIONS);
  const among = db.query<{ username: string }>(
    `SELECT a.username FROM json_each(?2) j JOIN accounts a ON a.username = j.value
     JOIN members m ON m.conversation_id = ?1 AND m.account_id = a.id ORDER BY j.key`,
  );
  const counters = db.query<{ uuid: string; seq: number }>(COUNTERS);
  const former = db.query<{ id: number; seq: number }>(FORMER_CONVERSATIONS);
  const unread = db.query<{ count: number }>(UNREAD_COUNT);
  const memberRecords = (conversationId: number): MemberRecord[] =>
    members.all(conversationId).map(toMember);

  return {
    conversation: (uuid, viewerId) => {
      const row = record.get(uuid, viewerId);
      if (row) db.own(row.id);
      return row && { ...row, joined: row.joined === 1 };
    },
    directConversation: (pair) => direct.get(pairKey(pair))?.id ?? null,
    chatsByExternalId: (ids) => external.all(JSON.stringify(ids)),
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
  const one = db.query<ConversationRow>(`${CONVERSATION_VIEW} WHERE c.id = $2`);
  const list = db.query<ConversationRow>(
    `${CONVERSATION_VIEW} WHERE me.account_id IS NOT NULL
       AND ($2 IS NULL OR (k.updated_at, c.id) < ($2, $3))
     ORDER BY k.updated_at DESC, c.id DESC LIMIT $4`,
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
    `INSERT INTO conversations (uuid, kind, title, direct_pair, created_by, admin_id, created_at,
       external_id, metadata)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
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
  const describe = db.change("UPDATE conversations SET metadata = ?2 WHERE id = ?1");
  const close = db.change("UPDATE conversations SET closed_at = ?2 WHERE id = ?1");

  return {
    insertConversation: (conversation) => {
      const { uuid, kind, title: name, created_by, at, external_id = null } = conversation;
      const metadata = conversation.metadata ? JSON.stringify(conversation.metadata) : null;
      const pair = conversation.direct ? pairKey(conversation.direct) : null;
      const adminId = kind === "group" ? created_by : null;
      const row = insert.get(
        uuid,
        kind,
        name,
        pair,
        created_by,
        adminId,
        at,
        external_id,
        metadata,
      );
      if (!row) throw new Error("a conversation was not inserted");
      insertCounters.run(row.id, at);
      db.own(row.id);
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
    setChatMetadata: (conversationId, metadata) =>
      void describe.run(conversationId, JSON.stringify(metadata)),
    setTitle: (conversationId, name) => void title.run(conversationId, name),
    closeConversation: (conversationId, at) => void close.run(conversationId, at),
    markRead: markRead(db),
  };
}

/** What it sets is explained at `UNREAD_COUNT`. */
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
