import { expect, test } from "bun:test";
import { signUp } from "@parley/testkit/client.ts";
import { operatorAt } from "@parley/testkit/operators.ts";
import { startServer } from "@parley/testkit/server.ts";

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;

test.each([
  ["90 days", 90, {}],
  ["PARLEY_AUDIT_DAYS", 7, { PARLEY_AUDIT_DAYS: "7" }],
])("entries are kept for %s", async (_, days, settings) => {
  await using server = await startServer({ ...settings, PARLEY_OPERATORS: "olga" });
  const old = await signUp(server.url, "old");
  await server.moveClock(DAY_MS);
  const young = await signUp(server.url, "young");
  await server.moveClock((days - 1) * DAY_MS);
  const olga = await operatorAt(server, "olga");
  const actions = async (account: string) =>
    (await olga.call("getAuditLog", { account })).items.map(({ action }) => action);
  const areDeleted = async () => (await actions(old.username)).length === 0;
  await server.moveClockUntil(areDeleted, "the entries are deleted", HOUR_MS);
  expect(await actions(young.username)).toEqual(["sign_up"]);
});
