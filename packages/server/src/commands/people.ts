import { openStore } from "../compose/backends.ts";
import { type Config, ConfigError } from "../config.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { Store } from "../store/store.ts";

/** The store of a command, which closes at the end of its scope. */
export async function openCommandStore(config: Config) {
  const store = await openStore(config);
  return { store, [Symbol.asyncDispose]: () => store.close() };
}

export async function personNamed(store: Store, username: string): Promise<AccountRecord> {
  const account = await store.read((tx) => tx.account(username.toLowerCase()));
  if (account?.kind === "human" && account.erased_at === null) return account;
  throw new ConfigError(
    `There is no person named ${username}. Run "parley users list" to see all of them.`,
  );
}
