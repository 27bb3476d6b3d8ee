import { urlOf } from "../compose.ts";
import { ConfigError, readConfig } from "../config/config.ts";
import { createPasswordReset, resetUrl } from "../domain/passwords.ts";
import { iso } from "../rules/time.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { Store } from "../store/store.ts";
import { command } from "./command.ts";
import { openService } from "./people.ts";

export const resetLink = command({
  name: "users reset-link",
  summary: "Print a link with which a person sets a new password.",
  details: `For somebody who has forgotten the password. The link works once, within a day, and in place of
an earlier one. It ends all sessions of the person, and keeps a second factor. Works while the
server runs.`,
  arguments: { username: "The username of a person." },
  options: {
    url: {
      type: "string",
      value: "address",
      summary: "Where people open the web client. Default: HOST and PORT of the settings.",
    },
  },
  examples: [
    {
      line: "users reset-link alice --url https://chat.example.com",
      summary: "Prints the link for alice.",
    },
  ],
  async run({ arguments: given, options }) {
    const config = readConfig();
    const base = (options.url ?? urlOf(config.host, config.port)).replace(/\/+$/, "");
    if (!/^https?:$/.test(URL.parse(base)?.protocol ?? "")) {
      throw new ConfigError("--url must be an address such as https://chat.example.com.");
    }
    await using service = await openService(config);
    const { store, log } = service;
    const account = await service.person(given.username);
    const { username } = account;
    await checkResettable(store, account);
    const created = await log.write((tx, record) => createPasswordReset(tx, record, account, {}));
    const url = resetUrl(base, created);
    const expires_at = iso(created.expires_at);
    return { json: { username, url, expires_at }, text: url };
  },
});

async function checkResettable(
  store: Store,
  { username, suspended_at }: AccountRecord,
): Promise<void> {
  if (suspended_at !== null) {
    throw new ConfigError(
      `${username} is suspended. Run "parley users restore ${username}" first.`,
    );
  }
  const known = await store.read((tx) => tx.credentials(username));
  if (known?.password_hash === null) {
    throw new ConfigError(
      `${username} has no password. Run "parley users reset ${username}" to set one.`,
    );
  }
}
