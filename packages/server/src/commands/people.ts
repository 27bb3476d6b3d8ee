import { openStore } from "../compose/backends.ts";
import { ConfigError, readConfig } from "../config/config.ts";
import { createAuditLog } from "../security/audit-log.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { Store } from "../store/store.ts";
import { printError, reasonOf } from "./output.ts";

export const person = { username: "The username of a person." };

/**
 * What a command works with. The store closes at the end of its scope. A command that makes sense before
 * the first start does not need a database (`mustExist: false`).
 */
export async function openService(config = readConfig(), { mustExist = true } = {}) {
  const store = await openStore(config, { mustExist });
  return {
    config,
    store,
    log: commandLog(store),
    person: (username: string) => personNamed(store, username),
    [Symbol.asyncDispose]: () => store.close(),
  };
}

async function personNamed(store: Store, username: string): Promise<AccountRecord> {
  const account = await store.read((tx) => tx.account(username.toLowerCase()));
  if (account?.kind === "human" && account.erased_at === null) return account;
  throw new ConfigError(
    `There is no person named ${username}. Run "parley users list" to see all of them.`,
  );
}

/** The audit log of a command: its entries are stored, and are no log lines between those of the command. */
const commandLog = (store: Store) =>
  createAuditLog(
    {
      info() {},
      error: ({ err, event }) =>
        printError(`The audit log has no entry "${event}": it was not stored (${reasonOf(err)}).`),
    },
    store,
  );
