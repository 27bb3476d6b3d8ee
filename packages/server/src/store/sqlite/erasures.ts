import type { AccountRecord } from "../accounts.ts";
import type { ErasureReads, ErasureWrites, ToolCallPlace } from "../erasures.ts";
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
import type { Connection } from "./connection.ts";
import { deleteUnusedFilesOf } from "./files.ts";

export function erasureReads(db: Connection): ErasureReads {
  const open = db.query<ErasureRow>(OPEN_ERASURES);
  const owned = db.query<AccountRecord>(
    `SELECT ${ACCOUNT} FROM accounts a WHERE a.owner_id = ? ORDER BY a.id`,
  );
  const calls = db.query<ToolCallPlace>(TOOL_CALLS_TO_ERASE);
  return {
    openErasures: () => open.all().map(toErasure),
    ownedAccounts: (ownerId) => owned.all(ownerId),
    toolCallsToErase: (ownerId) => calls.all(ownerId),
  };
}

export function erasureWrites(db: Connection): ErasureWrites {
  const erase = db.change(ERASE_ACCOUNT);
  const begin = db.change(
    "INSERT INTO erasures (account_id, messages, created_at) VALUES (?, ?, ?)",
  );
  const eraseCalls = toolCallErasures("IN (SELECT value FROM json_each(?))").map((sql) =>
    db.change(sql),
  );
  const finish = db.change("DELETE FROM erasures WHERE account_id = ?");
  const deleteUnusedFiles = deleteUnusedFilesOf(db);
  return {
    eraseAccount: (account, { messages, at }) => {
      if (erase.run(account.id, at).changes === 0) return false;
      for (const { sql, values } of erasureStatements(account, at)) {
        db.change(sql).run(...values);
      }
      deleteUnusedFiles(account.id);
      begin.run(account.id, messages ? 1 : 0, at);
      return true;
    },
    eraseToolCalls: (_, uuids) => {
      for (const each of eraseCalls) each.run(JSON.stringify(uuids));
    },
    finishErasure: (accountId) => void finish.run(accountId),
  };
}
