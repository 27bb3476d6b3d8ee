import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { startNats } from "@parley/testkit/nats.ts";
import { startPostgres } from "@parley/testkit/postgres.ts";

const TESTS = join(import.meta.dir, "..");
const files = [
  ...readdirSync(join(TESTS, "conformance")).map((name) => join(TESTS, "conformance", name)),
  join(TESTS, "events-equal-state.test.ts"),
  join(TESTS, "agents-equal-state.test.ts"),
  join(TESTS, "oidc.test.ts"),
];

test("the conformance suite passes on two nodes, with the calls spread over them", async () => {
  await using postgres = await startPostgres();
  await using nats = await startNats();
  const services = JSON.stringify({ postgres: postgres.url, nats: nats.url });
  // Two processes: the tests mostly wait.
  const halves = [0, 1].map((half) => files.filter((_, index) => index % 2 === half));
  const outcomes = await Promise.all(halves.map((half) => run(half, services)));
  for (const { code, output } of outcomes) if (code !== 0) process.stderr.write(output);
  expect(outcomes.map(({ code, failed }) => ({ code, failed }))).toEqual([
    { code: 0, failed: [] },
    { code: 0, failed: [] },
  ]);
}, 1_800_000);

async function run(some: readonly string[], services: string) {
  const child = Bun.spawn([process.execPath, "test", "--timeout", "180000", ...some], {
    env: { ...process.env, PARLEY_TEST_SERVICES: services },
    stdout: "ignore",
    stderr: "pipe",
  });
  const output = await child.stderr.text();
  const failed = output.split("\n").filter((line) => line.startsWith("(fail)"));
  return { code: await child.exited, failed, output };
}
