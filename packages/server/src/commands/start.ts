import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { compose, type Running } from "../compose.ts";
import { type Config, readConfig } from "../config/config.ts";
import { lockDataFolder, secretFile } from "../store/data-folder.ts";
import { command } from "./command.ts";
import { failWith } from "./output.ts";

export const start = command({
  name: "start",
  summary: "Run the server. The default.",
  details:
    "Runs until SIGTERM or SIGINT, which stop it gracefully; a second signal ends it at once.",
  json: false,
  examples: [
    { line: "start", summary: "On http://127.0.0.1:8080, with the data in ./data." },
    { line: "", summary: "The same." },
  ],
  async run({ print }) {
    const config = withInviteCode(readConfig());
    if (!config.database) lockDataFolder(config);
    const running = await compose(config);
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      process.once(signal, () => running.stop().then(() => process.exit(0), failWith));
    }
    print(startupLines(running, config));
    return null;
  },
});

/** Generates the installation's invite code once, if sign-up needs one and none is configured. */
function withInviteCode(config: Config): Config {
  if (config.signUp.kind !== "invite" || config.signUp.codes.length > 0) return config;
  const file = secretFile(config, "invite-code");
  if (!existsSync(file)) writeFileSync(file, crypto.randomUUID(), { mode: 0o600 });
  return { ...config, signUp: { kind: "invite", codes: [readFileSync(file, "utf8").trim()] } };
}

/** Printed in one write, so that a program that waits for the first line can read the others. */
function startupLines({ url, metricsUrl }: Running, config: Config): string {
  const invite_code = config.signUp.kind === "invite" ? config.signUp.codes[0] : undefined;
  const account = { username: "alice", password: "correct horse battery", invite_code };
  const lines = [
    `Parley listens on ${url}`,
    metricsUrl && `Metrics are at ${metricsUrl}`,
    `Data is kept in ${config.database ? "PostgreSQL" : resolve(config.dataDir)}`,
    invite_code !== undefined && `Invite code: ${invite_code}`,
    `The reference is at ${url}/docs`,
    config.signUp.kind === "closed"
      ? `To begin, open ${url} in a browser, with an account of "parley users create"`
      : `To begin, open ${url} in a browser, or sign up here:\n  ${signUpCommand(url, account)}`,
  ];
  return lines.filter(Boolean).join("\n");
}

const signUpCommand = (url: string, account: object) =>
  `curl -s ${url}/api/signUp -H 'content-type: application/json' -d '${JSON.stringify(account)}'`;
