import type { AddedBy } from "@parley/protocol";
import type { InvitationReads, InvitationWrites } from "../invitations.ts";
import { IS_STRANGER, LEAVE_FOR_GOOD, REFUSES, UNANSWERED_GROUPS } from "../shared/invitations.ts";
import type { Connection } from "./connection.ts";

export function invitationReads(db: Connection): InvitationReads {
  const addedBy = db.query<{ added_by: AddedBy }>("SELECT added_by FROM accounts WHERE id = ?");
  const refusing = db.query<{ id: number }>(
    `SELECT a.id FROM json_each($1) j JOIN accounts a ON a.id = j.value WHERE ${REFUSES}`,
  );
  const strangers = db.query<{ id: number }>(
    `SELECT a.id FROM json_each($1) j JOIN accounts a ON a.id = j.value WHERE ${IS_STRANGER}`,
  );
  const unanswered = db.query<{ uuid: string }>(UNANSWERED_GROUPS);
  const gone = db.query<{ id: number }>(
    `SELECT d.account_id AS id FROM json_each(?2) j
     JOIN final_departures d ON d.conversation_id = ?1 AND d.account_id = j.value`,
  );
  const ids = (rows: readonly { id: number }[]) => rows.map(({ id }) => id);
  return {
    addedBy: (accountId) => addedBy.get(accountId)?.added_by ?? "everyone",
    refusingInvitation: (accountIds, inviterId) =>
      ids(refusing.all(JSON.stringify(accountIds), inviterId)),
    strangersAmong: (accountIds, inviterId) =>
      ids(strangers.all(JSON.stringify(accountIds), inviterId)),
    unansweredGroups: (memberId, creatorId, limit) =>
      unanswered.all(memberId, creatorId, limit).map(({ uuid }) => uuid),
    goneForGood: (conversationId, accountIds) =>
      ids(gone.all(conversationId, JSON.stringify(accountIds))),
  };
}

export function invitationWrites(db: Connection): InvitationWrites {
  const set = db.change("UPDATE accounts SET added_by = ?2 WHERE id = ?1");
  const leave = db.change(LEAVE_FOR_GOOD);
  return {
    setAddedBy: (accountId, addedBy) => void set.run(accountId, addedBy),
    leaveForGood: (conversationId, accountId, at) => void leave.run(conversationId, accountId, at),
  };
}
