import type { AddedBy } from "@parley/protocol";
import type { InvitationReads, InvitationWrites } from "../invitations.ts";
import { list, type Methods } from "./unit.ts";

const ids = (rows: readonly { id: number }[]) => rows.map(({ id }) => id);

export const invitationReads: Methods<keyof InvitationReads> = {
  addedBy: async (unit, accountId) => {
    const row = await unit.get<{ added_by: AddedBy }>(
      "SELECT added_by FROM accounts WHERE id = $1",
      accountId,
    );
    return row?.added_by ?? "everyone";
  },
  refusingInvitation: async (unit, accountIds, inviterId) =>
    ids(
      await unit.all<{ id: number }>(
        `SELECT a.id FROM accounts a WHERE a.id = ANY($1::bigint[]) AND (
           EXISTS (SELECT 1 FROM blocks b WHERE b.account_id = a.id AND b.blocked_id = $2)
           OR a.added_by = 'known' AND NOT EXISTS (SELECT 1 FROM members own
             JOIN members theirs ON theirs.conversation_id = own.conversation_id
             WHERE own.account_id = a.id AND own.wrote AND theirs.account_id = $2))`,
        list(accountIds),
        inviterId,
      ),
    ),
  goneForGood: async (unit, conversationId, accountIds) =>
    ids(
      await unit.all<{ id: number }>(
        `SELECT account_id AS id FROM final_departures
         WHERE conversation_id = $1 AND account_id = ANY($2::bigint[])`,
        conversationId,
        list(accountIds),
      ),
    ),
};

export const invitationWrites: Methods<keyof InvitationWrites> = {
  setAddedBy: async (unit, accountId, addedBy) => {
    await unit.ownRow("accounts", accountId);
    await unit.change("UPDATE accounts SET added_by = $2 WHERE id = $1", accountId, addedBy);
  },
  leaveForGood: async (unit, conversationId, accountId, at) => {
    await unit.change(
      `INSERT INTO final_departures (conversation_id, account_id, left_at) VALUES ($1, $2, $3)
       ON CONFLICT DO NOTHING`,
      conversationId,
      accountId,
      at,
    );
  },
};
