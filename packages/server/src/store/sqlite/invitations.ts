import type { AddedBy } from "@parley/protocol";
import type { InvitationReads, InvitationWrites } from "../invitations.ts";
import type { Connection } from "./connection.ts";

export function invitationReads(db: Connection): InvitationReads {
  const addedBy = db.query<{ added_by: AddedBy }>("SELECT added_by FROM accounts WHERE id = ?");
  const refusing = db.query<{ id: number }>(
    `SELECT a.id FROM json_each(?1) j JOIN accounts a ON a.id = j.value
     WHERE EXISTS (SELECT 1 FROM blocks b WHERE b.account_id = a.id AND b.blocked_id = ?2)
       OR a.added_by = 'known' AND NOT EXISTS (SELECT 1 FROM members own
         JOIN members theirs ON theirs.conversation_id = own.conversation_id
         WHERE own.account_id = a.id AND own.wrote = 1 AND theirs.account_id = ?2)`,
  );
  const gone = db.query<{ id: number }>(
    `SELECT d.account_id AS id FROM json_each(?2) j
     JOIN final_departures d ON d.conversation_id = ?1 AND d.account_id = j.value`,
  );
  const ids = (rows: readonly { id: number }[]) => rows.map(({ id }) => id);
  return {
    addedBy: (accountId) => addedBy.get(accountId)?.added_by ?? "everyone",
    refusingInvitation: (accountIds, inviterId) =>
      ids(refusing.all(JSON.stringify(accountIds), inviterId)),
    goneForGood: (conversationId, accountIds) =>
      ids(gone.all(conversationId, JSON.stringify(accountIds))),
  };
}

export function invitationWrites(db: Connection): InvitationWrites {
  const set = db.change("UPDATE accounts SET added_by = ?2 WHERE id = ?1");
  const leave = db.change(
    `INSERT INTO final_departures (conversation_id, account_id, left_at) VALUES (?, ?, ?)
     ON CONFLICT DO NOTHING`,
  );
  return {
    setAddedBy: (accountId, addedBy) => void set.run(accountId, addedBy),
    leaveForGood: (conversationId, accountId, at) => void leave.run(conversationId, accountId, at),
  };
}
