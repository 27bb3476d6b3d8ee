import { afterEach, expect, setSystemTime, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exports } from "../src/exports/exports.ts";
import { logger } from "../src/observe/log.ts";
import { vault } from "../src/security/vault.ts";
import { openSqliteStore } from "../src/store/sqlite/index.ts";
import { newAccount } from "./support/store-contract/fixture.ts";

afterEach(() => void setSystemTime());

test("a link expires after ten minutes, and another master key does not open it", async () => {
  const folder = mkdtempSync(join(tmpdir(), "parley-exports-"));
  const store = openSqliteStore(join(folder, "parley.db"));
  const log = logger("silent");
  const of = (key: number) =>
    exports({ store, blobs: null, vault: vault([Buffer.alloc(32, key)]), log });
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
