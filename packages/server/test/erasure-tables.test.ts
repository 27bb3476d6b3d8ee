import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { agentOf, answerTo, groupOf, say, signUp } from "@parley/testkit/client.ts";
import { databaseOf } from "@parley/testkit/database.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { erasureWrites } from "../src/store/erasures.ts";
import { preparing, Sql, sql, type Template } from "../src/store/sql.ts";
import { migrate } from "../src/store/sqlite/connection.ts";

/** Tables that keep rows of an erased account, and why. */
const KEPT = {
  webhooks: "named by username, and disabled: their creator may read nothing any more",
  members: "finishErasure leaves groups; the other person keeps a direct conversation",
  former_members: "readers of the history are told that the account is deleted",
  reactions: "they stay, as those of a deleted account",
  component_uses: "they stay, as those of a deleted account",
  files: "those of messages stay with them; eraseAccount deletes the others, and their blobs",
  erasures: "what is still to be done",
};

test("an erasure knows every table that has rows of an account", async () => {
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
  const statements: string[] = [];
  const find = preparing({ name: "sqlite", encode: String, prepare: (text) => text });
  const recording = Object.assign(Object.create(Sql.prototype), {
    ownRow: () => {},
    own: () => {},
    changesUnowned: () => {},
    change: (...template: Template) => statements.push(find(sql(...template), [])),
    changed: () => [],
  }) as Sql;
  await erasureWrites.eraseAccount(recording, account, { messages: true, at: 0 });
  await erasureWrites.eraseToolCalls(recording, 1, []);
  const isErased = (name: string) =>
    statements.some((sql) => new RegExp(`^(UPDATE|DELETE FROM) ${name}\\b`).test(sql));
  const unknown = tables.filter(({ name }) => !isErased(name) && !(name in KEPT));
  expect(unknown).toEqual([]);
});

test("an erasure leaves the display name in no table but the change log, which expires", async () => {
  await using server = await startServer(noRates);
  const [ada, bob] = [await signUp(server.url, "ada"), await signUp(server.url, "bob")];
  await ada.call("updateMe", { display_name: "Xanthippe" });
  const chat = await groupOf(ada, bob);
  await ada.call("createIncomingHook", { chat_id: chat.id, name: "alerts" });
  await ada.call("addGroupAgent", { chat_id: chat.id, agent_username: agentOf(ada) });
  await using reader = await bob.connect();
  const asked = await say(ada, chat, `@${agentOf(ada)} hello`);
  const answer = await answerTo(reader, asked);
  expect(answer.turn?.error?.code).toBe("key_missing");
  for (const { id } of [asked, answer]) {
    await bob.call("reportMessage", { message_id: id, reason: "spam" });
  }
  await ada.call("deleteMe", { password: "correct horse battery" });
  await reader.event("events.conversationUpdated", ({ participants }) => participants.length === 1);
  using db = databaseOf(server);
  expect(tablesWith(db, "Xanthippe")).toEqual(["changes"]);
  // Words of people, and ids that accounts are known by, have the username; turns have neither.
  expect(tablesWith(db, ada.username)).not.toContain("turns");
});

/** The tables with a row that contains the text. */
function tablesWith(db: Database, text: string): string[] {
  const tables = db.query<{ name: string }, []>(
    "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name",
  );
  const hasText = ({ name }: { name: string }) =>
    db
      .query(`SELECT * FROM "${name}"`)
      .all()
      .some((row) => JSON.stringify(row).includes(text));
  return tables
    .all()
    .filter(hasText)
    .map(({ name }) => name);
}
