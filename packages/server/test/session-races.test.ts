import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Bound } from "../src/calls/bind.ts";
import type { Needs } from "../src/calls/needs.ts";
import { alone } from "../src/changes/cluster.ts";
import { eraseAccount } from "../src/domain/erasures.ts";
import { secondFactorBinding } from "../src/domain/second-factor.ts";
import { openSession, replacePassword } from "../src/domain/sessions.ts";
import { restore, suspend } from "../src/domain/suspension.ts";
import { createLogger } from "../src/observe/log.ts";
import { ownData } from "../src/operations/own-data.ts";
import { secondFactor } from "../src/operations/second-factor.ts";
import { sessions } from "../src/operations/sessions.ts";
import { createAuditLog } from "../src/security/audit-log.ts";
import { codeOf, newSecret, recoveryCodeHash, timeStep } from "../src/security/second-factor.ts";
import { createSignInThrottle } from "../src/security/sign-in-throttle.ts";
import { createVault } from "../src/security/vault.ts";
import type { AccountRecord } from "../src/store/accounts.ts";
import { openSqliteStore } from "../src/store/sqlite/index.ts";
import { Unavailable, type WriteTx } from "../src/store/store.ts";
import { newAccount } from "./support/store-contract/fixture.ts";

const folder = mkdtempSync(join(tmpdir(), "parley-sessions-"));
const store = openSqliteStore(join(folder, "parley.db"));
const audit = createAuditLog(createLogger("silent"), store);
afterAll(async () => {
  await store.close();
  rmSync(folder, { recursive: true });
});

let people = 0;
const newPerson = () =>
  store.write((tx) =>
    newAccount(tx, {
      username: `person_${++people}`,
      password_hash: "hash of old",
    }),
  );

const config = { passwordSignIn: true, operators: [], limits: { session_days: 90 } };
const keys = createVault([Buffer.alloc(32, 1)]);
const origin = { address: "192.0.2.1", network: "192.0.2.1", user_agent: null };
const attempt = { succeeded() {}, withdrawn() {}, checksCode() {} };

/** Calls an operation while `meanwhile` runs between its check of the password and its write. */
function call(
  name: string,
  input: object,
  meanwhile: () => Promise<unknown>,
  caller?: object,
  services: Partial<Needs> = {},
) {
  const bound = [sessions, ownData, secondFactor]
    .flatMap((resource) => resource.bind({} as Needs))
    .find((each) => each.contract.name === name);
  if (!bound) throw new Error(`${name} is missing`);
  const context = {
    config,
    store,
    audit,
    vault: keys,
    erasures: { wake() {} },
    signInThrottle: { attempt: () => attempt },
    passwords: {
      verify: async (password: string, hash: string | null) => {
        const isRight = hash === `hash of ${password}`;
        await meanwhile();
        return isRight;
      },
      rehash: async (password: string) => `hash of ${password}`,
    },
    caller,
    origin,
    about() {},
    ...services,
  };
  return bound.handle(context as unknown as Parameters<Bound["handle"]>[0], input);
}

/** What a call fails with. `rejects` would wait without the messages of the thread that syncs the log. */
const failureOf = (result: Promise<unknown>) =>
  result.then(
    () => null,
    (error) => error,
  );

const changePassword = (account: AccountRecord) =>
  store.write((tx) => replacePassword(tx, account, "hash of new"));
const suspendAccount = (account: AccountRecord) =>
  audit.write((tx, record) => suspend(tx, record, account, {}));
const restoreAccount = (account: AccountRecord) =>
  audit.write((tx, record) => restore(tx, record, account, {}));
const erase = (account: AccountRecord) =>
  audit.write((tx, record) => eraseAccount(tx, record, account, { messages: false, details: {} }));

const sessionsOf = ({ id }: AccountRecord) => store.read((tx) => tx.sessions(id, Date.now()));
const lastEntry = async () => (await store.read((tx) => tx.auditLog({ limit: 1 })))[0];

test.each([
  ["its password is changed", changePassword, "unauthorized"],
  ["the account is suspended", suspendAccount, "suspended"],
  ["the account is erased", erase, "unauthorized"],
] as const)("signIn opens no session if %s meanwhile", async (_, change, code) => {
  const account = await newPerson();
  const { username } = account;
  const signIn = call("signIn", { username, password: "old" }, () => change(account));
  expect(await failureOf(signIn)).toMatchObject({ code });
  expect(await sessionsOf(account)).toEqual([]);
  expect(await lastEntry()).toMatchObject({ action: "sign_in_failed", account: username });
});

test("signIn works if the account is suspended and restored meanwhile", async () => {
  const account = await newPerson();
  await call("signIn", { username: account.username, password: "old" }, async () => {
    await suspendAccount(account);
    await restoreAccount(account);
  });
  expect(await sessionsOf(account)).toHaveLength(1);
});

test("changePassword is refused if the password is changed meanwhile", async () => {
  const account = await newPerson();
  const input = { current_password: "old", new_password: "a long enough secret 47" };
  const caller = { kind: "session", account, session_id: Bun.randomUUIDv7() };
  const change = call("changePassword", input, () => changePassword(account), caller);
  expect(await failureOf(change)).toMatchObject({ code: "forbidden" });
  const known = await store.read((tx) => tx.credentials(account.username));
  expect(known?.password_hash).toBe("hash of new");
  expect(await lastEntry()).toMatchObject({ action: "password_change_failed" });
});

test("deleteMe is refused if the password is changed meanwhile", async () => {
  const account = await newPerson();
  const caller = { kind: "session", account, session_id: Bun.randomUUIDv7() };
  const deletion = call("deleteMe", { password: "old" }, () => changePassword(account), caller);
  expect(await failureOf(deletion)).toMatchObject({ code: "forbidden" });
  const known = await store.read((tx) => tx.account(account.username));
  expect(known?.erased_at).toBeNull();
  expect(await lastEntry()).toMatchObject({ action: "account_deletion_refused" });
});

const RECOVERY_CODE = "abcde-fghij";

/** Turns on a second factor of the account, with one recovery code. */
const addSecondFactor = ({ id }: AccountRecord) =>
  store.write(async (tx) => {
    const factor = { account_id: id, secret: "sealed", at: Date.now() };
    await tx.beginSecondFactor(factor);
    await tx.confirmSecondFactor(factor);
    await tx.setRecoveryCodes(id, [recoveryCodeHash(id, RECOVERY_CODE)]);
  });
const factorOf = ({ id }: AccountRecord) =>
  store.read(async (tx) => ({
    factor: await tx.secondFactor(id),
    codes: await tx.recoveryCodesLeft(id),
  }));

test.each([
  ["beginSecondFactor", false],
  ["renewRecoveryCodes", true],
  ["removeSecondFactor", true],
] as const)("%s is refused if the password is changed meanwhile", async (name, isOn) => {
  const account = await newPerson();
  if (isOn) await addSecondFactor(account);
  const before = await factorOf(account);
  const caller = { kind: "session", account, session_id: Bun.randomUUIDv7() };
  const input = { password: "old", code: RECOVERY_CODE };
  const change = call(name, input, () => changePassword(account), caller);
  expect(await failureOf(change)).toMatchObject({ code: "forbidden" });
  expect(await factorOf(account)).toEqual(before);
  expect(await lastEntry()).toMatchObject({ action: "second_factor_failed" });
});

test("confirmSecondFactor is refused if another one is begun meanwhile", async () => {
  const account = await newPerson();
  const { id } = account;
  const secret = newSecret();
  const sealed = keys.seal(secret, secondFactorBinding(id));
  const begin = (tx: WriteTx, factor: string) =>
    tx.beginSecondFactor({ account_id: id, secret: factor, at: Date.now() });
  await store.write((tx) => begin(tx, sealed));
  // PostgreSQL runs the other transaction after this one has read the factor.
  const interrupted: typeof audit.write = (unit) =>
    audit.write((tx, record) => {
      const secondFactor = async () => {
        const known = await tx.secondFactor(id);
        await begin(tx, "another");
        return known;
      };
      return unit(Object.create(tx, { secondFactor: { value: secondFactor } }), record);
    });
  const caller = { kind: "session", account, session_id: Bun.randomUUIDv7() };
  const confirming = call(
    "confirmSecondFactor",
    { code: codeOf(secret, timeStep(Date.now())) },
    async () => {},
    caller,
    { audit: { ...audit, write: interrupted } },
  );
  expect(await failureOf(confirming)).toMatchObject({ code: "forbidden" });
  const { factor, codes } = await factorOf(account);
  expect({ confirmed_at: factor?.confirmed_at, codes }).toEqual({ confirmed_at: null, codes: 0 });
  expect(await lastEntry()).toMatchObject({ action: "second_factor_failed" });
});

test.each([
  ["suspended", suspendAccount, "suspended"],
  ["erased", erase, "unauthorized"],
] as const)(
  "no session opens for an account that has been %s since it was read",
  async (_, change, code) => {
    const account = await newPerson();
    await change(account);
    const context = { vault: keys, origin, config };
    const opened = store.write((tx) => openSession(tx, account, context, {}));
    expect(await failureOf(opened)).toMatchObject({ code });
    expect(await sessionsOf(account)).toEqual([]);
  },
);

const unreachable = () => Promise.reject(new Unavailable("the database cannot be reached"));

test.each([
  ["signIn", "write"],
  ["signIn", "read"],
  ["confirmSecondFactor", "write"],
  ["renewRecoveryCodes", "write"],
  ["renewRecoveryCodes", "read"],
] as const)("%s counts no failure while the database cannot %s", async (name, failing) => {
  const account = await newPerson();
  const { username } = account;
  const factor = { account_id: account.id, secret: "sealed", at: Date.now() };
  await store.write((tx) => tx.beginSecondFactor(factor));
  if (name !== "confirmSecondFactor") await store.write((tx) => tx.confirmSecondFactor(factor));
  const throttle = createSignInThrottle((scope) => ({ cluster: alone, name: scope }));
  const caller = { kind: "session" as const, account, session_id: Bun.randomUUIDv7() };
  for (let count = 0; count < 20; count++) {
    // The first read comes before the attempt is counted.
    let reads = 0;
    const read: typeof store.read = (unit) => (++reads > 1 ? unreachable() : store.read(unit));
    const services = {
      signInThrottle: throttle,
      ...(failing === "write" && { audit: { ...audit, write: unreachable } }),
      ...(failing === "read" && { store: { ...store, read } }),
    };
    const input = { username, password: "old", code: "123456" };
    const failed = call(name, input, async () => {}, caller, services);
    expect(await failureOf(failed)).toBeInstanceOf(Unavailable);
  }
});
