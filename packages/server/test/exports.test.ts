import { afterEach, expect, setSystemTime, spyOn, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { unzip } from "@parley/testkit/zip.ts";
import { createExports } from "../src/files/exports/exports.ts";
import { createLogger } from "../src/observe/log.ts";
import { createVault } from "../src/security/vault.ts";
import { openSqliteStore } from "../src/store/sqlite/index.ts";
import { newAccount } from "./support/store-contract/fixture.ts";

afterEach(() => void setSystemTime());

test("a link expires after ten minutes, and another master key does not open it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "parley-exports-"));
  const store = openSqliteStore(join(folder, "parley.db"));
  const log = createLogger("silent");
  const of = (key: number) =>
    createExports({ store, blobs: null, vault: createVault([Buffer.alloc(32, key)]), log });
  const account = await store.write((tx) => newAccount(tx, { username: "ada" }));
  const { path, expires_at } = of(1).link(account);
  const token = path.slice("/exports/".length);
  const refused = "not found: this link is wrong or has expired, ask for a new one";
  await expect(of(2).open(token)).rejects.toThrow(refused);
  const { body } = await of(1).open(token);
  await body.cancel();
  setSystemTime(expires_at + 1);
  await expect(of(1).open(token)).rejects.toThrow(refused);
  setSystemTime();
  await store.close();
  rmSync(folder, { recursive: true });
});

test("a download that stalled and ends does not end the next one of the same person", async () => {
  const folder = mkdtempSync(join(tmpdir(), "parley-exports-"));
  const store = openSqliteStore(join(folder, "parley.db"));
  const log = createLogger("silent");
  const service = createExports({
    store,
    blobs: null,
    vault: createVault([Buffer.alloc(32, 1)]),
    log,
  });
  const account = await store.write((tx) => newAccount(tx, { username: "ada" }));
  const open = () => service.open(service.link(account).path.slice("/exports/".length));
  const { now } = performance;
  let skippedMs = 0;
  const clock = spyOn(performance, "now").mockImplementation(
    () => now.call(performance) + skippedMs,
  );
  const skip = (ms: number) => {
    skippedMs += ms;
    setSystemTime(Date.now() + ms);
  };

  const stalled = (await open()).body.getReader();
  await stalled.read();
  skip(11_000);
  const { body } = await open();
  await stalled.cancel();
  const third = await open().then(
    () => "begins",
    (error) => error.message,
  );
  expect(third).toBe("conflict: another download of your data is running");
  skip(3000);
  const files = unzip(await new Response(body).bytes());
  expect([...files.keys()]).toContain("messages.jsonl");
  await (await open()).body.cancel();
  clock.mockRestore();
  await store.close();
  rmSync(folder, { recursive: true });
});
