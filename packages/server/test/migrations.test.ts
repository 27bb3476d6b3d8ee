import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrations as postgres } from "../src/store/postgres/migrations.ts";
import { migrate, openDatabase } from "../src/store/sqlite/connection.ts";
import { NEWEST_SCHEMA, migrations as sqlite } from "../src/store/sqlite/migrations.ts";

const digest = (text: string) => new Bun.CryptoHasher("sha256").update(text).digest("hex");

/** Databases record the number of their schema. When a migration is released, set its digest. */
test.each([
  ["SQLite", 1, sqlite[0]?.sql, "79b38175769fb70b3d219c1af98dea09f071359583f3a5c15b68ec5ad372968a"],
  [
    "SQLite",
    54,
    sqlite[1]?.sql,
    "564d282d0882c67ac658d4167b8b65414115f7ee86b932a292c71c7ac30c321a",
  ],
  [
    "PostgreSQL",
    1,
    postgres[0]?.sql,
    "c4de5136b253f1c70aa004c0281c9967f5eaf2962e5c355d766eedb1e78ce41a",
  ],
  [
    "PostgreSQL",
    57,
    postgres[1]?.sql,
    "1458f69c411fef232a7592c8d2d714cc0eb4c78d305a71c76aab7efba05ae6fd",
  ],
])("the migration of %s to schema %i is not changed", (_, _schema, sql = "", sum) => {
  expect(digest(sql)).toBe(sum);
});

test("of two processes that open a SQLite database together, one migrates it", () => {
  using open = new DisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "parley-migrations-"));
  open.defer(() => rmSync(folder, { recursive: true }));
  const [one, other] = [1, 2].map(() => open.use(openDatabase(join(folder, "parley.db"))));
  if (!one || !other) throw new Error("they were just opened");
  const begin = one.transaction.bind(one);
  one.transaction = (work) => {
    migrate(other);
    return begin(work);
  };
  migrate(one);
  expect(one.query("PRAGMA user_version").get()).toEqual({ user_version: NEWEST_SCHEMA });
});
