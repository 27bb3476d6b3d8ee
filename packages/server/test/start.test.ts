import { expect, test } from "bun:test";
import { chmodSync, statSync } from "node:fs";
import { join } from "node:path";
import { post } from "@parley/testkit/client.ts";
import { startServer, type TestServer } from "@parley/testkit/server.ts";

test("the start makes secrets in the data folder private", async () => {
  await using server = await startServer({ PARLEY_SIGNUP: "invite" });
  await server.stop();
  const secrets = ["master.key", "invite-code"].map((name) => join(server.dataDir, name));
  for (const file of secrets) chmodSync(file, 0o644);
  await server.restart();
  for (const file of secrets) expect(statSync(file).mode & 0o777).toBe(0o600);
});

/** Resolves when the server has printed something that matches. */
async function printed(server: TestServer, pattern: RegExp): Promise<RegExpExecArray> {
  for (;;) {
    const found = pattern.exec(server.output());
    if (found) return found;
    await Bun.sleep(10);
  }
}

test("the start prints a command to sign up, with the invite code if one is needed", async () => {
  for (const PARLEY_SIGNUP of ["open", "invite"]) {
    await using server = await startServer({ PARLEY_SIGNUP });
    const [, account = "{}"] = await printed(server, /api\/signUp .* -d '(.*)'/);
    const { status } = await post(server.url, "signUp", JSON.parse(account));
    expect(status).toBe(200);
  }
});

test("the start prints no such command while sign-up is closed", async () => {
  await using server = await startServer({ PARLEY_SIGNUP: "closed" });
  await printed(server, /\/docs/);
  await server.stop();
  expect(server.output()).not.toContain("signUp");
});
