import { randomBytes } from "node:crypto";
import { operations, type Session } from "@parley/protocol";
import { ConfigError, readConfig, urlOf } from "../config/config.ts";
import { createPerson } from "../domain/accounts.ts";
import { createPasswordReset, resetUrl } from "../domain/passwords.ts";
import { endSession, replacePassword } from "../domain/sessions.ts";
import { type AccountRecord, NOBODY } from "../rules/accounts.ts";
import { iso } from "../rules/time.ts";
import type { AuditLog } from "../security/audit-log.ts";
import { hashNow } from "../security/passwords.ts";
import type { FoundAccount } from "../store/account-names.ts";
import type { Store } from "../store/store.ts";
import { command, type Result } from "./command.ts";
import { openService, person } from "./people.ts";

const PAGE_ROWS = 1000;

export const listUsers = command({
  name: "users list",
  summary: "List all people, with their display names.",
  options: {
    find: { type: "string", value: "text", summary: "Only names that begin with this text." },
  },
  examples: [
    { line: "users list", summary: "One line per person, by username." },
    { line: "users list --find ada", summary: "To find somebody's username." },
  ],
  async run({ options: { find } }) {
    await using service = await openService();
    const users = await Array.fromAsync(peopleIn(service.store, find));
    const width = Math.max(0, ...users.map(({ username }) => username.length));
    const lines = users.map((each) => `${each.username.padEnd(width)}  ${each.display_name}`);
    return { json: { users }, text: lines.join("\n") };
  },
});

/** Everybody, or those with a name that begins with the text. */
async function* peopleIn(store: Store, query: string | undefined) {
  for (let last: FoundAccount | undefined; ; ) {
    const page = await readPage(store, query, last);
    for (const { username, display_name } of page) yield { username, display_name };
    if (page.length < PAGE_ROWS) return;
    last = page.at(-1);
  }
}

const readPage = (store: Store, query: string | undefined, after: FoundAccount | undefined) =>
  store.read(async (tx): Promise<FoundAccount[]> => {
    const common = { viewerId: NOBODY, limit: PAGE_ROWS };
    if (query !== undefined) return tx.findAccounts({ ...common, query, after });
    const accounts = await tx.listAccounts({ ...common, after: after?.username });
    return accounts.map((account) => ({ ...account, name: account.username }));
  });

export const createUser = command({
  name: "users create",
  summary: "Create an account for a person, and print its password.",
  details: "Works while the server runs, and also where sign-up is closed.",
  arguments: { username: "2 to 32 letters, digits or underscores." },
  options: {
    name: { type: "string", value: "text", summary: "The display name. Default: the username." },
  },
  examples: [{ line: 'users create ada --name "Ada Lovelace"', summary: "Prints the password." }],
  async run({ arguments: given, options: { name } }) {
    const config = readConfig();
    const password = newPassword();
    const { username, display_name = username } = readPerson(given.username, password, name);
    await using service = await openService(config, { mustExist: false });
    const password_hash = await hashNow(password);
    const created = await service.log.write(async (tx, record) => {
      const account = await createPerson(
        tx,
        { username, display_name, password_hash },
        config.providers,
      );
      if (account) await record("sign_up", { account: username });
      return account !== null;
    });
    if (!created) {
      throw new ConfigError(
        `The username ${username} is taken. Choose another one, or run "parley users reset ${username}".`,
      );
    }
    return {
      json: { username, display_name, password },
      text: `The account ${username} was created. Its password is ${password}`,
    };
  },
});

/** Checks a new account like a sign-up. */
function readPerson(username: string, password: string, display_name: string | undefined) {
  const { data, error } = operations.signUp.input.safeParse({ username, password, display_name });
  if (data) return data;
  const [issue] = error.issues;
  throw new ConfigError(`The account was not created: ${issue?.path.join(".")} ${issue?.message}.`);
}

export const resetUser = command({
  name: "users reset",
  summary: "Set and print a new password for a person, or remove their second factor.",
  details: "A new password ends all sessions of the person. Works while the server runs.",
  arguments: person,
  options: {
    "second-factor": {
      type: "boolean",
      summary: "Remove the second factor instead. The password and the sessions stay.",
    },
  },
  examples: [
    { line: "users reset alice", summary: "Prints the new password of alice." },
    { line: "users reset alice --second-factor", summary: "After a phone was lost." },
  ],
  async run({ arguments: given, options }) {
    await using service = await openService();
    const account = await service.person(given.username);
    const run = options["second-factor"] ? resetSecondFactor : resetPassword;
    // Awaited here: the store closes at the end of this scope.
    return await run(service.log, account);
  },
});

async function resetPassword(log: AuditLog, account: AccountRecord): Promise<Result> {
  const { username } = account;
  const password = newPassword();
  const hash = await hashNow(password);
  const sessions_ended = await log.write(async (tx, record) => {
    const ended = await replacePassword(tx, account, hash);
    await record("password_reset", { account: username, sessions_ended: ended });
    return ended;
  });
  return {
    json: { username, password, sessions_ended },
    text: `The password of ${username} is now ${password}`,
  };
}

async function resetSecondFactor(log: AuditLog, { id, username }: AccountRecord): Promise<Result> {
  const removed = await log.write(async (tx, record) => {
    const wasSet = await tx.removeSecondFactor(id);
    if (wasSet) await record("second_factor_removed", { account: username });
    return wasSet;
  });
  const text = removed
    ? `The second factor of ${username} was removed.`
    : `${username} has no second factor.`;
  return { json: { username, removed }, text };
}

const newPassword = () => randomBytes(12).toString("base64url");

export const resetLink = command({
  name: "users reset-link",
  summary: "Print a link with which a person sets a new password.",
  details: `For somebody who has forgotten the password. The link works once, within a day, and in place of
an earlier one. It ends all sessions of the person, and keeps a second factor. Works while the
server runs.`,
  arguments: person,
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

async function checkResettable(store: Store, { username, suspended_at }: AccountRecord) {
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

export const userSessions = command({
  name: "users sessions",
  summary: "List the sessions of a person, or end them all.",
  details: "Works while the server runs: sockets of ended sessions close within seconds.",
  arguments: person,
  options: {
    end: { type: "boolean", summary: "End all sessions. The password stays." },
  },
  examples: [
    { line: "users sessions alice", summary: "Most recently used first." },
    { line: "users sessions alice --end", summary: "After a device was lost." },
  ],
  async run({ arguments: given, options: { end } }) {
    await using service = await openService();
    const { store, log } = service;
    const account = await service.person(given.username);
    const { username } = account;
    const sessions = await store.read((tx) => tx.sessions(account.id, Date.now()));
    if (!end) return { json: { username, sessions }, text: sessionLines(sessions) };
    await log.write(async (tx, record) => {
      for (const { id } of sessions) {
        if (!(await endSession(tx, id, account))) continue;
        await record("session_ended", { account: username, session_id: id, reason: "revoked" });
      }
    });
    return {
      json: { username, sessions_ended: sessions.length },
      text: `Ended ${sessions.length} sessions of ${username}.`,
    };
  },
});

const sessionLines = (sessions: readonly Omit<Session, "current">[]) =>
  sessions
    .map(({ created_at, last_used_at, user_agent }) => {
      // A client may send anything as its name, also what a terminal would obey.
      const client = (user_agent ?? "unknown client").replace(/\p{C}/gu, "?");
      return `used ${last_used_at}  signed in ${created_at}  ${client}`;
    })
    .join("\n");
