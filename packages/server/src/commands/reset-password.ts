import { randomBytes } from "node:crypto";
import { openStore } from "../compose.ts";
import { ConfigError, readConfig } from "../config.ts";
import { replacePassword } from "../domain/sessions.ts";
import { hashNow } from "../security/passwords.ts";
import { commandLog, print } from "./output.ts";

/** Sets a random password, prints it, and ends all sessions of the account. */
export async function resetPassword(username: string): Promise<void> {
  const config = readConfig();
  const store = await openStore(config);
  const account = await store.read((tx) => tx.account(username));
  if (account?.kind !== "human") throw new ConfigError(`There is no person named ${username}.`);
  const password = randomBytes(12).toString("base64url");
  const hash = await hashNow(password);
  const sessions_ended = await store.write((tx) => replacePassword(tx, account, hash));
  commandLog(config).record("password_reset", { account: username, sessions_ended });
  print(`The password of ${username} is now ${password}`);
  await store.close();
}
