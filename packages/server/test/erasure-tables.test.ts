import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { erasureStatements } from "../src/store/shared/erasures.ts";
import { migrate } from "../src/store/sqlite/connection.ts";

/** Tables that keep rows of an erased account, and why. */
const KEPT = {
  webhooks: "named by username, and disabled: their creator may read nothing any more",
  members: "finishErasure leaves groups; the other person keeps a direct conversation",
  former_members: "readers of the history are told that the account is deleted",
  reactions: "they stay, as those of a deleted account",
  component_uses: "they stay, as those of a deleted account",
  erasures: "what is still to be done",
};

test("an erasure knows every table that has rows of an account", () => {
  const db = new Database(":memory:");
  migrate(db);
  const tables = db
    .query<{ name: string }, []>(
      `SELECT DISTINCT t.name FROM sqlite_schema t, pragma_table_info(t.name) c
       WHERE t.type = 'table' AND c.name IN ('account_id', 'owner_id', 'creator') ORDER BY t.name`,
    )
    .all();
  const account = {
    id: 1,
    username: "ada",
    kind: "human",
    display_name: "Ada",
    version: 0,
    owner_id: null,
    provider: null,
    suspended_at: null,
    erased_at: null,
  } as const;
  const statements = erasureStatements(account, 0, () => "?").map(({ sql }) => sql);
  const isErased = (name: string) =>
    statements.some((sql) => new RegExp(`^(UPDATE|DELETE FROM) ${name}\\b`).test(sql));
  const unknown = tables.filter(({ name }) => !isErased(name) && !(name in KEPT));
  expect(unknown).toEqual([]);
});
