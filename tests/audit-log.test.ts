import { expect, test } from "bun:test";
import { signUp, signUpAs } from "@parley/testkit/client.ts";
import { databaseOf } from "@parley/testkit/database.ts";
import { startServer, type TestServer } from "@parley/testkit/server.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

/** Makes the entries of an account older, in the database of a stopped server. */
function age(server: TestServer, account: string, days: number): void {
  using db = databaseOf(server);
  db.query("UPDATE audit_log SET at = at - ? WHERE account = ?").run(days * DAY_MS, account);
}

test.each([
  ["90 days", 90, {}],
  ["PARLEY_AUDIT_DAYS", 7, { PARLEY_AUDIT_DAYS: "7" }],
])("entries are kept for %s", async (_, days, settings) => {
  await using server = await startServer({ ...settings, PARLEY_OPERATORS: "olga" });
  const [old, young] = [await signUp(server.url, "old"), await signUp(server.url, "young")];
  const olga = await signUpAs(server.url, "olga");
  await server.stop();
  age(server, old.username, days);
  age(server, young.username, days - 1);
  await server.restart();
  const operator = olga.at(server.url);
  const actions = async (account: string) =>
    (await operator.call("getAuditLog", { account })).items.map(({ action }) => action);
  while ((await actions(old.username)).length > 0) await Bun.sleep(20);
  expect(await actions(young.username)).toEqual(["sign_up"]);
});
