import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrations as postgres } from "../src/store/postgres/migrations.ts";
import { migrate, openDatabase } from "../src/store/sqlite/connection.ts";
import { migrations as sqlite } from "../src/store/sqlite/migrations.ts";

const digest = (texts: readonly string[]) =>
  new Bun.CryptoHasher("sha256").update(JSON.stringify(texts)).digest("hex");

/**
 * Databases record how many migrations they have had. When migrations were added and published, raise
 * the number and set the digest.
 */
test.each([
  ["SQLite", sqlite, 44, "dbb32d504c4142a1b0ba08166a95aacb826a82863b63bf73626978c4aebc428e"],
  ["PostgreSQL", postgres, 46, "cc2a5ea011b480068b508aab9e5cc5bf00c604aed153a1ee4ce16ca37fb9356e"],
] as const)("published migrations of %s are neither changed nor removed", (_, all, count, sum) => {
  expect(digest(all.slice(0, count))).toBe(sum);
});

test("a SQLite database whose 40th migration made the indexes of turns is migrated", () => {
  using db = new Database(":memory:");
  for (const migration of [...sqlite.slice(0, 39), sqlite[41] ?? ""]) db.run(migration);
  db.run("PRAGMA user_version = 40");
  migrate(db);
  using current = new Database(":memory:");
  migrate(current);
  const schema = (of: Database) =>
    of.query("SELECT name, sql FROM sqlite_schema ORDER BY name").all();
  expect(schema(db)).toEqual(schema(current));
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
  expect(one.query("PRAGMA user_version").get()).toEqual({ user_version: sqlite.length });
});
