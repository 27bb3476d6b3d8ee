import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { migrations as postgres } from "../src/store/postgres/migrations.ts";
import { migrate } from "../src/store/sqlite/connection.ts";
import { migrations as sqlite } from "../src/store/sqlite/migrations.ts";

const digest = (texts: readonly string[]) =>
  new Bun.CryptoHasher("sha256").update(JSON.stringify(texts)).digest("hex");

/**
 * Databases record how many migrations they have had. When migrations were added and published, raise
 * the number and set the digest.
 */
test.each([
  ["SQLite", sqlite, 40, "0fcd061f4361a007a96452487b36affbe3a5f3f1b82719e133b5f0b1809c7e57"],
  ["PostgreSQL", postgres, 42, "6ba5a849e3de872bb01c49ddb9507094db03412a7b6a8f10df7acd71887efea0"],
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
