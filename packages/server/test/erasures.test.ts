import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "@parley/testkit/until.ts";
import { createLogger } from "../src/observe/log.ts";
import { openSqliteStore } from "../src/store/sqlite/index.ts";
import { startErasures } from "../src/upkeep/erasures.ts";
import { newAccount, START } from "./support/store-contract/fixture.ts";

test("an erasure that always fails does not hold up others", async () => {
  const folder = mkdtempSync(join(tmpdir(), "parley-erasures-"));
  const path = join(folder, "parley.db");
  const store = openSqliteStore(path);
  const [first] = await store.write(async (tx) => {
    const accounts = [
      await newAccount(tx, { username: "ada" }),
      await newAccount(tx, { username: "bob" }),
      await newAccount(tx, { username: "eve" }),
    ];
    for (const each of accounts) await tx.eraseAccount(each, { messages: true, at: START });
    return accounts;
  });
  {
    using db = new Database(path, { readwrite: true });
    db.run(`CREATE TRIGGER erasure_fails BEFORE DELETE ON erasures WHEN old.account_id = ${first?.id}
      BEGIN SELECT RAISE(ABORT, 'not this one'); END`);
  }
  const open = () =>
    store.read(async (tx) => (await tx.openErasures()).map(({ account }) => account.username));
  const work = startErasures({ store, node: "here", log: createLogger("silent") });
  await until(async () => (await open()).length === 1, "the others are erased");
  await work.stop();
  expect(await open()).toEqual(["ada"]);
  await store.close();
  rmSync(folder, { recursive: true });
});
