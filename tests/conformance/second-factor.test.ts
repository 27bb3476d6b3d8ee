import { describe, expect, test } from "bun:test";
import { Authenticator, addSecondFactor } from "@parley/testkit/authenticator.ts";
import { Backend } from "@parley/testkit/backend.ts";
import { failure, outcome, Person, post, signUp, transports } from "@parley/testkit/client.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";

const server = await sharedServer();
const backend = new Backend(server.url);

const PASSWORD = "correct horse battery";

const signIn = (person: Person, more: object = {}) =>
  post(server.url, "signIn", { username: person.username, password: PASSWORD, ...more });
const codeOf = async (answer: ReturnType<typeof signIn>) => {
  const { body } = await answer;
  return body.ok ? "ok" : body.code;
};
const off = { available: true, enabled: false, enabled_at: null, recovery_codes_left: 0 };

describe.each(transports)("over %s", (transport) => {
  test("a second factor is added, used for signing in, and removed", async () => {
    const person = await signUp(server.url);
    await using caller = await person.via(transport);
    expect(await caller.call("getSecondFactor")).toEqual(off);
    const { app, recoveryCodes } = await addSecondFactor(caller, PASSWORD);
    expect(new Set(recoveryCodes).size).toBe(10);
    expect(await caller.call("getSecondFactor")).toEqual({
      available: true,
      enabled: true,
      enabled_at: expect.any(String),
      recovery_codes_left: 10,
    });
    const asked = await signIn(person);
    expect(asked.status).toBe(401);
    expect(asked.body).toMatchObject({ ok: false, code: "second_factor_required" });
    const code = app.next();
    expect(await codeOf(signIn(person, { code }))).toBe("ok");
    const [again = "", last = ""] = recoveryCodes;
    const removal = { password: PASSWORD, code: again };
    expect((await failure(caller.call("removeSecondFactor", { ...removal, code }))).code).toBe(
      "forbidden",
    );
    await caller.call("removeSecondFactor", removal);
    expect(await caller.call("getSecondFactor")).toEqual(off);
    expect(await codeOf(signIn(person))).toBe("ok");
    const gone = caller.call("removeSecondFactor", { ...removal, code: last });
    expect((await failure(gone)).code).toBe("not_found");
  });
});

test("a secret has no effect before it is confirmed, and a new one replaces it", async () => {
  const person = await signUp(server.url);
  const begin = () => person.call("beginSecondFactor", { password: PASSWORD });
  const confirm = (code: string) => person.call("confirmSecondFactor", { code });
  expect((await failure(confirm("123456"))).code).toBe("not_found");
  const first = await begin();
  expect(await codeOf(signIn(person))).toBe("ok");
  const second = await begin();
  expect(second.secret).not.toBe(first.secret);
  expect(second.otpauth_uri).toStartWith(`otpauth://totp/Parley:${person.username}%40127.0.0.1?`);
  const old = await failure(confirm(new Authenticator(first.secret).next()));
  expect(old).toMatchObject({
    code: "forbidden",
    message: "forbidden: the code is wrong, or was used already",
  });
  const app = new Authenticator(second.secret);
  const digits = app.next();
  await confirm(`${digits.slice(0, 3)} ${digits.slice(3)}`);
  expect((await failure(confirm(app.next()))).code).toBe("conflict");
  expect((await failure(begin())).code).toBe("conflict");
});

test("confirming ends all other sessions", async () => {
  const person = await signUp(server.url);
  const { body } = await signIn(person);
  const { access_token } = (body as unknown as { result: { access_token: string } }).result;
  const other = new Person(server.url, access_token, person.account);
  await other.call("getMe");
  await addSecondFactor(person, PASSWORD);
  expect(await outcome(other.call("getMe"))).toBe("unauthorized");
  expect(await outcome(person.call("getMe"))).toBe("ok");
});

test("only somebody who knows the password learns of the second factor", async () => {
  const person = await signUp(server.url);
  const { app } = await addSecondFactor(person, PASSWORD);
  const code = app.next();
  const wrong = { password: "a wrong password" };
  expect(await codeOf(signIn(person, wrong))).toBe("unauthorized");
  expect(await codeOf(signIn(person, { ...wrong, code }))).toBe("unauthorized");
  // A wrong password has not used the code.
  expect(await codeOf(signIn(person, { code }))).toBe("ok");
});

test("a code signs in once, however many use it at the same time", async () => {
  const person = await signUp(server.url);
  const { app } = await addSecondFactor(person, PASSWORD);
  const code = app.next();
  const all = await Promise.all([1, 2, 3].map(() => codeOf(signIn(person, { code }))));
  expect(all.toSorted()).toEqual(["ok", "second_factor_required", "second_factor_required"]);
  expect(await codeOf(signIn(person, { code }))).toBe("second_factor_required");
});

test("a recovery code signs in once, in any spelling", async () => {
  const person = await signUp(server.url);
  const { recoveryCodes } = await addSecondFactor(person, PASSWORD);
  const [code = ""] = recoveryCodes;
  const typed = ` ${code.toUpperCase().replaceAll("-", " ")}`;
  const all = await Promise.all([1, 2, 3].map(() => codeOf(signIn(person, { code: typed }))));
  expect(all.toSorted()).toEqual(["ok", "second_factor_required", "second_factor_required"]);
  expect(await person.call("getSecondFactor")).toMatchObject({ recovery_codes_left: 9 });
});

test("a device that has signed in before is asked too", async () => {
  const person = await signUp(server.url);
  const { body } = await signIn(person);
  const { device } = (body as unknown as { result: { device: string } }).result;
  const { app } = await addSecondFactor(person, PASSWORD);
  expect(await codeOf(signIn(person, { device }))).toBe("second_factor_required");
  expect(await codeOf(signIn(person, { device, code: app.next() }))).toBe("ok");
});

test("guessed codes are throttled, and signing in without a code does not reset that", async () => {
  const person = await signUp(server.url);
  const { app } = await addSecondFactor(person, PASSWORD);
  const seen: string[] = [];
  // The waits double, so that a slow machine reaches one too.
  while (seen.at(-1) !== "rate_limited" && seen.length < 12) {
    seen.push(await codeOf(signIn(person, { code: app.wrong() })));
    await signIn(person);
  }
  expect(seen.slice(0, 5)).toEqual(Array(5).fill("second_factor_required"));
  expect(seen.at(-1)).toBe("rate_limited");
});

test("guessing codes with a session is throttled", async () => {
  const person = await signUp(server.url);
  const { app } = await addSecondFactor(person, PASSWORD);
  const seen: string[] = [];
  while (seen.at(-1) !== "rate_limited" && seen.length < 12) {
    const input = { password: PASSWORD, code: app.wrong() };
    seen.push((await failure(person.call("removeSecondFactor", input))).code);
  }
  expect(seen.slice(0, 5)).toEqual(Array(5).fill("forbidden"));
  expect(seen.at(-1)).toBe("rate_limited");
  expect(await person.call("getSecondFactor")).toMatchObject({ enabled: true });
});

test("new recovery codes need password and code, and replace the old ones", async () => {
  const person = await signUp(server.url);
  const { app, recoveryCodes } = await addSecondFactor(person, PASSWORD);
  const renew = (password: string, code: string) =>
    person.call("renewRecoveryCodes", { password, code });
  const [old = "", used = ""] = recoveryCodes;
  expect(await failure(renew("a wrong password", used))).toMatchObject({
    code: "forbidden",
    message: "forbidden: the password is wrong",
  });
  expect((await failure(renew(PASSWORD, "aaaa-aaaa-aaaa-aaaa"))).code).toBe("forbidden");
  const renewed = await renew(PASSWORD, app.next());
  expect(renewed.recovery_codes).toHaveLength(10);
  expect(await person.call("getSecondFactor")).toMatchObject({ recovery_codes_left: 10 });
  expect(await codeOf(signIn(person, { code: old }))).toBe("second_factor_required");
  expect(await codeOf(signIn(person, { code: renewed.recovery_codes[0] }))).toBe("ok");
});

test("a new password keeps the second factor", async () => {
  const person = await signUp(server.url);
  const { app } = await addSecondFactor(person, PASSWORD);
  const password = "another long password";
  await person.call("changePassword", { current_password: PASSWORD, new_password: password });
  expect(await codeOf(signIn(person, { password }))).toBe("second_factor_required");
  expect(await codeOf(signIn(person, { password, code: app.next() }))).toBe("ok");
});

test("an account without a password has none: its product decides", async () => {
  const external_id = `customer ${process.pid}`;
  await backend.call("upsertUsers", { users: [{ external_id }] });
  const customer = backend.as(`id:${external_id}`);
  expect(await customer.call("getSecondFactor")).toEqual({ ...off, available: false });
  const refused = await failure(customer.call("beginSecondFactor", { password: PASSWORD }));
  expect(refused.code).toBe("forbidden");
});

test("tokens that a product issues need no code", async () => {
  const person = await signUp(server.url);
  await addSecondFactor(person, PASSWORD);
  const { username } = person;
  const { access_token } = await backend.call("issueToken", { username });
  expect(access_token).toStartWith("ply_");
});

test("without a second factor a code is ignored", async () => {
  const person = await signUp(server.url);
  expect(await codeOf(signIn(person, { code: "123456" }))).toBe("ok");
  expect(await codeOf(signIn(person, { code: "" }))).toBe("bad_request");
});
