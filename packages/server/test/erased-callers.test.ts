import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Bound } from "../src/calls/bind.ts";
import type { Needs } from "../src/calls/needs.ts";
import { readConfig } from "../src/config/config.ts";
import { createPerson } from "../src/domain/accounts.ts";
import { eraseAccount } from "../src/domain/erasures.ts";
import { suspend } from "../src/domain/suspension.ts";
import { createLogger } from "../src/observe/log.ts";
import { handlers } from "../src/operations/index.ts";
import { createAuditLog } from "../src/security/audit-log.ts";
import { createVault } from "../src/security/vault.ts";
import type { AccountRecord } from "../src/store/accounts.ts";
import { openSqliteStore } from "../src/store/sqlite/index.ts";

const folder = mkdtempSync(join(tmpdir(), "parley-erased-"));
const store = openSqliteStore(join(folder, "parley.db"));
const audit = createAuditLog(createLogger("silent"), store);
const config = readConfig({
  PARLEY_DATA: folder,
  PARLEY_SANDBOX: "on",
  PARLEY_PRIVATE_ADDRESSES: "allow",
});
afterAll(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

const unlimited = { take() {} };
/** Calls an operation as somebody who authenticated when the account was as given. */
function call(name: string, input: object, account: AccountRecord) {
  const bound = handlers({} as Needs).find(({ contract }) => contract.name === name);
  if (!bound) throw new Error(`${name} is missing`);
  const context = {
    ...{ config, store, audit, vault: createVault([Buffer.alloc(32, 1)]) },
    throttles: { tool_contacts: unlimited },
    files: { links: { sign: () => "" }, quota: { check: () => {}, add: () => {} } },
    caller: { kind: "session", account, session_id: Bun.randomUUIDv7() },
    origin: { address: "192.0.2.1", network: "192.0.2.1", user_agent: null },
  };
  return bound.handle(context as unknown as Parameters<Bound["handle"]>[0], input);
}

let people = 0;
async function newPerson(): Promise<AccountRecord> {
  const person = { username: `person_${++people}`, display_name: "Real Name" };
  const account = await store.write((tx) => createPerson(tx, person, config.providers));
  if (!account) throw new Error(`${person.username} is taken`);
  return account;
}

const bob = await newPerson();
const calls = {
  updateMe: { display_name: "Real Name" },
  setAgentKey: { provider: "claude", api_key: "sandbox-key" },
  createAgent: { name: "helper", provider: "claude" },
  addToolServer: { name: "tools", url: "http://127.0.0.1/mcp", token: "secret" },
  blockUser: { username: bob.username },
  startChat: { usernames: [bob.username] },
  createUpload: { purpose: "picture", name: "me.png", size: 5 },
};

const changes = {
  erased: (account: AccountRecord) =>
    audit.write((tx, record) =>
      eraseAccount(tx, record, account, { messages: false, details: {} }),
    ),
  suspended: (account: AccountRecord) =>
    audit.write((tx, record) => suspend(tx, record, account, {})),
};

/** What is stored of a person. */
const stateOf = ({ id, username }: AccountRecord) =>
  store.read(async (tx) => ({
    account: await tx.account(username),
    owned: await tx.ownedAccounts(id),
    agents: await tx.agents(id),
    toolServers: await tx.toolServers(id),
    blocked: await tx.blockList(id),
    conversations: await tx.counters(id),
    files: await tx.unusedFiles(Number.MAX_SAFE_INTEGER, 1),
  }));

test.each(
  Object.entries(calls).flatMap(([name, input]) => [
    { name, input, change: "erased" as const, code: "unauthorized" },
    { name, input, change: "suspended" as const, code: "suspended" },
  ]),
)("$name stores nothing for an account that was $change since it authenticated", async (each) => {
  const account = await newPerson();
  await changes[each.change](account);
  const before = await stateOf(account);
  const error = await Promise.resolve(call(each.name, each.input, account)).then(
    () => null,
    (caught: unknown) => caught,
  );
  expect(await stateOf(account)).toEqual(before);
  expect(error).toMatchObject({ code: each.code });
});
