import { randomBytes } from "node:crypto";
import { openStore } from "../compose.ts";
import { ConfigError, readConfig } from "../config.ts";
import { replacePassword } from "../domain/sessions.ts";
import { hashNow } from "../security/passwords.ts";
import { command } from "./command.ts";
import { commandLog } from "./output.ts";

export const resetUser = command({
  name: "users reset",
  summary: "Set and print a new password for a person.",
  details: "Ends all sessions of the person. Works while the server runs.",
  arguments: { username: "The username of a person; agents have no password." },
  examples: [{ line: "users reset alice", summary: "Prints the new password of alice." }],
  async run({ arguments: { username } }) {
    const config = readConfig();
    const store = await openStore(config);
    const account = await store.read((tx) => tx.account(username));
    if (account?.kind !== "human") throw new ConfigError(`There is no person named ${username}.`);
    const password = randomBytes(12).toString("base64url");
    const hash = await hashNow(password);
    const sessions_ended = await commandLog(config, store).write(async (tx, record) => {
      const ended = await replacePassword(tx, account, hash);
      await record("password_reset", { account: username, sessions_ended: ended });
      return ended;
    });
    await store.close();
    return {
      json: { username, password, sessions_ended },
      text: `The password of ${username} is now ${password}`,
    };
  },
});
