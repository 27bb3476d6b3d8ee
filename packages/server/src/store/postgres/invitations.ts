import type { AddedBy } from "@parley/protocol";
import type { InvitationReads, InvitationWrites } from "../invitations.ts";
import { IS_STRANGER, LEAVE_FOR_GOOD, REFUSES, UNANSWERED_GROUPS } from "../shared/invitations.ts";
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
        `SELECT a.id FROM accounts a WHERE a.id = ANY($1::bigint[]) AND ${REFUSES}`,
        list(accountIds),
        inviterId,
      ),
    ),
  strangersAmong: async (unit, accountIds, inviterId) =>
    ids(
      await unit.all<{ id: number }>(
        `SELECT a.id FROM accounts a WHERE a.id = ANY($1::bigint[]) AND ${IS_STRANGER}`,
        list(accountIds),
        inviterId,
      ),
    ),
  unansweredGroups: async (unit, memberId, creatorId, limit) => {
    const rows = await unit.all<{ uuid: string }>(UNANSWERED_GROUPS, memberId, creatorId, limit);
    return rows.map(({ uuid }) => uuid);
  },
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
    await unit.write("UPDATE accounts SET added_by = $2 WHERE id = $1", accountId, addedBy);
  },
  leaveForGood: async (unit, conversationId, accountId, at) => {
    await unit.write(LEAVE_FOR_GOOD, conversationId, accountId, at);
  },
};
