import type { AccountRecord } from "../accounts.ts";
import type { ErasureReads, ErasureWrites, ToolCallPlace } from "../erasures.ts";
import { deleteUnusedFilesOf } from "../files.ts";
import { ACCOUNT } from "../shared/accounts.ts";
import {
  ERASE_ACCOUNT,
  type ErasureRow,
  erasureStatements,
  OPEN_ERASURES,
  TOOL_CALLS_TO_ERASE,
  toErasure,
  toolCallErasures,
} from "../shared/erasures.ts";
import { list, type Methods } from "./unit.ts";

export const erasureReads: Methods<keyof ErasureReads> = {
  openErasures: async (unit) => (await unit.all<ErasureRow>(OPEN_ERASURES)).map(toErasure),
  ownedAccounts: (unit, ownerId) =>
    unit.all<AccountRecord>(
      `SELECT ${ACCOUNT} FROM accounts a WHERE a.owner_id = $1 ORDER BY a.id`,
      ownerId,
    ),
  toolCallsToErase: (unit, ownerId) => unit.all<ToolCallPlace>(TOOL_CALLS_TO_ERASE, ownerId),
};

const ERASE_TOOL_CALLS = toolCallErasures("= ANY($1::uuid[])");

export const erasureWrites: Methods<keyof ErasureWrites> = {
  eraseAccount: async (unit, account, { messages, at }) => {
    await unit.ownRow("accounts", account.id);
    const erased = await unit.write(ERASE_ACCOUNT, account.id, at);
    if (erased.count === 0) return false;
    for (const { sql, values } of erasureStatements(account, at)) {
      await unit.write(sql, ...values);
    }
    await deleteUnusedFilesOf(unit, account.id);
    await unit.write(
      "INSERT INTO erasures (account_id, messages, created_at) VALUES ($1, $2, $3)",
      account.id,
      messages,
      at,
    );
    return true;
  },
  eraseToolCalls: async (unit, conversationId, uuids) => {
    await unit.own(conversationId);
    for (const sql of ERASE_TOOL_CALLS) await unit.write(sql, list(uuids));
  },
  finishErasure: async (unit, accountId) => {
    await unit.write("DELETE FROM erasures WHERE account_id = $1", accountId);
  },
};
