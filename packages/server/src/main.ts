#!/usr/bin/env -S BUN_CONFIG_MAX_HTTP_REQUESTS=65336 bun
import { fail, print } from "./commands/output.ts";
import { ConfigError } from "./config.ts";

const USAGE = `Usage: parley [serve]
       parley ready
       parley history renew
       parley keys rotate
       parley password reset <username>
       parley migrate --from sqlite --to postgres`;

/** Each command is imported when it is chosen, so that the server starts without the others. */
async function main(command: string): Promise<void> {
  const [, username] = /^password reset (\S+)$/.exec(command) ?? [];
  if (username !== undefined) {
    await (await import("./commands/reset-password.ts")).resetPassword(username);
  } else if (command === "" || command === "serve") {
    await (await import("./commands/serve.ts")).serve();
  } else if (/^(?:help|--help|-h)$/.test(command)) {
    print(USAGE);
  } else if (command === "ready") {
    await (await import("./commands/ready.ts")).ready();
  } else if (command === "history renew") {
    await (await import("./commands/renew-history.ts")).renewHistory();
  } else if (command === "keys rotate") {
    await (await import("./commands/rotate-keys.ts")).rotateKeysCommand();
  } else if (command === "migrate --from sqlite --to postgres") {
    await (await import("./commands/migrate.ts")).migrateCommand();
  } else {
    throw new ConfigError(USAGE);
  }
}

main(process.argv.slice(2).join(" ")).catch(fail);
