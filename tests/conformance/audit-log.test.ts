import { afterAll, describe, expect, test } from "bun:test";
import {
  failure,
  type Person,
  pagesOf,
  post,
  signUp,
  TIMESTAMP,
  transports,
} from "@parley/testkit/client.ts";
import { operatorAt } from "@parley/testkit/operators.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";

const server = await startServer({ ...noRates, PARLEY_OPERATORS: "olga, oscar" });
const olga = await operatorAt(server, "olga");
afterAll(() => server[Symbol.asyncDispose]());

const signIn = ({ username }: Person, password: string) =>
  post(server.url, "signIn", { username, password });

describe.each(transports)("getAuditLog over %s", (transport) => {
  test("lists what happened to an account, newest first", async () => {
    const alice = await signUp(server.url, "alice");
    await signIn(alice, "a wrong password");
    await signIn(alice, "correct horse battery");
    await using operator = await olga.via(transport);
    const { items, next_cursor } = await operator.call("getAuditLog", { account: alice.username });
    expect(items.map(({ action }) => action)).toEqual(["sign_in", "sign_in_failed", "sign_up"]);
    expect(next_cursor).toBeNull();
    expect(items[0]).toEqual({
      id: expect.any(Number),
      at: expect.stringMatching(TIMESTAMP),
      action: "sign_in",
      account: alice.username,
      operator: null,
      service_key: null,
      address: "127.0.0.1",
      user_agent: expect.any(String),
      details: { method: "password", session_id: expect.any(String) },
    });
    expect(JSON.stringify(items)).not.toContain("a wrong password");
  });

  test("filters by action and time, and has pages", async () => {
    const bob = await signUp(server.url, "bob");
    const account = bob.username;
    await using operator = await olga.via(transport);
    const list = async (filter: { action?: "sign_in" | "sign_up"; since?: string }) =>
      (await operator.call("getAuditLog", { account, ...filter })).items;
    for (let times = 0; times < 3; times++) await signIn(bob, "correct horse battery");
    expect(await list({ action: "sign_up" })).toHaveLength(1);
    expect(await list({ action: "sign_in" })).toHaveLength(3);
    const [last] = await list({});
    expect((await list({ since: last?.at ?? "" })).at(0)).toEqual(last as never);
    const later = new Date(Date.parse(last?.at ?? "") + 1).toISOString();
    expect(await list({ since: later })).toEqual([]);
    const pages = await pagesOf((place) =>
      operator.call("getAuditLog", { account, limit: 3, ...place }),
    );
    expect(pages.map((page) => page.length)).toEqual([3, 1]);
    expect(pages.flat()).toEqual(await list({}));
  });

  test("is 403 for people who are not operators", async () => {
    const carol = await signUp(server.url, "carol");
    await using caller = await carol.via(transport);
    expect(await failure(caller.call("getAuditLog"))).toMatchObject({
      code: "forbidden",
      message: "forbidden: only an operator may call this operation",
    });
  });

  test("is 400 for an unknown action, a time that is none, and a cursor of another list", async () => {
    await using operator = await olga.via(transport);
    for (const [input, field] of [
      [{ action: "unknown" as never }, "action"],
      [{ since: "yesterday" }, "since"],
      [{ cursor: "WyJhIl0" }, "cursor"],
    ] as const) {
      const { code, parameters } = await failure(operator.call("getAuditLog", input));
      expect(code).toBe("bad_request");
      expect(Object.keys(parameters?.fields ?? {})).toEqual([field]);
    }
  });
});
