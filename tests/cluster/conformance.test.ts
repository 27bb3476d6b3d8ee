import { beforeAll, describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { startNats } from "@parley/testkit/nats.ts";
import { startPostgres } from "@parley/testkit/postgres.ts";

const TESTS = join(import.meta.dir, "..");
const files = [
  ...readdirSync(join(TESTS, "conformance")).map((name) => `conformance/${name}`),
  "events-equal-state.test.ts",
  "agents-equal-state.test.ts",
  "oidc.test.ts",
];

describe("on two nodes, with the calls spread over them", () => {
  const outcomes = new Map<string, Awaited<ReturnType<typeof run>>>();

  // Two processes at a time: the tests mostly wait.
  beforeAll(async () => {
    await using postgres = await startPostgres();
    await using nats = await startNats();
    const services = { postgres: postgres.url, nats: nats.url };
    const waiting = files.values();
    const runWaiting = async () => {
      for (const file of waiting) outcomes.set(file, await run(file, services));
    };
    await Promise.all([runWaiting(), runWaiting()]);
  }, 1_800_000);

  test.each(files)("%s passes", (file) => {
    const outcome = outcomes.get(file);
    if (outcome?.code !== 0) process.stderr.write(outcome?.output ?? "");
    expect(outcome).toMatchObject({ code: 0, failed: [] });
  });
});

async function run(file: string, services: { postgres: string; nats: string }) {
  const child = Bun.spawn([process.execPath, "test", "--timeout", "300000", join(TESTS, file)], {
    env: { ...process.env, PARLEY_TEST_SERVICES: JSON.stringify(services) },
    stdout: "ignore",
    stderr: "pipe",
  });
  const output = await child.stderr.text();
  const failed = output.split("\n").filter((line) => line.startsWith("(fail)"));
  return { code: await child.exited, failed, output };
}
