import { expect, test } from "bun:test";
import { join } from "node:path";
import { startNats } from "../support/nats.ts";
import { startPostgres } from "../support/postgres.ts";

const TESTS = join(import.meta.dir, "..");
const SUITES = ["conformance/", "events-equal-state.test.ts", "agents-equal-state.test.ts"];

test("everything the contract says holds on two nodes, with the calls spread over them", async () => {
  await using postgres = await startPostgres();
  await using nats = await startNats();
  const services = JSON.stringify({ postgres: postgres.url, nats: nats.url });
  const suites = SUITES.map((suite) => join(TESTS, suite));
  const child = Bun.spawn([process.execPath, "test", "--timeout", "30000", ...suites], {
    env: { ...process.env, PARLEY_TEST_SERVICES: services },
    stdout: "ignore",
    stderr: "pipe",
  });
  const output = await child.stderr.text();
  const failed = output.split("\n").filter((line) => line.startsWith("(fail)"));
  const code = await child.exited;
  if (code !== 0) process.stderr.write(output);
  expect({ code, failed }).toEqual({ code: 0, failed: [] });
}, 900_000);
