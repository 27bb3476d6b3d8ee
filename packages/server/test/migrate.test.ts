import type { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import {
  agentOf,
  answerTo,
  CallFailed,
  checkedResult,
  groupOf,
  type Person,
  pagesOf,
  people,
  post,
  say,
  search,
  signUp,
} from "@parley/testkit/client.ts";
import { databaseOf } from "@parley/testkit/database.ts";
import { externalAgent } from "@parley/testkit/external-agents.ts";
import { linkOf, upload } from "@parley/testkit/files.ts";
import { fetchView } from "@parley/testkit/model.ts";
import { type SharedPostgres, sharedPostgres } from "@parley/testkit/postgres.ts";
import { providersAt } from "@parley/testkit/provider-server.ts";
import { startReceiver } from "@parley/testkit/receiver.ts";
import {
  noRates,
  onSeveralNodes,
  spawnMain,
  startServer,
  type TestServer,
} from "@parley/testkit/server.ts";
import { startSharedProvider } from "@parley/testkit/shared-provider.ts";
import { SQL } from "bun";
import { openPostgresStore } from "../src/store/postgres/index.ts";
import { openPostgresTarget } from "../src/store/postgres/target.ts";

let postgres: SharedPostgres;
beforeAll(async () => {
  postgres = await sharedPostgres();
});
afterAll(() => postgres[Symbol.asyncDispose]());

const COMMAND = ["migrate", "--from", "sqlite", "--to", "postgres"];
/** More rows than the command compares at a time. */
const MANY = 1100;

const spawnMigration = (dataDir: string, url: string, env: Record<string, string> = {}) =>
  spawnMain({ PARLEY_DATA: dataDir, DATABASE_URL: url, ...env }, COMMAND);

/** Runs the command to its end. */
async function migrate(dataDir: string, url: string, env?: Record<string, string>) {
  const child = spawnMigration(dataDir, url, env);
  const [output, errors, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { code, output, errors };
}

/** An empty database, and a connection to it. */
async function newDatabase() {
  const { url, drop } = await postgres.database();
  const sql = new SQL({ url, max: 1 });
  return {
    url,
    sql,
    async count(table: string): Promise<number> {
      const [row] = await sql.unsafe(`SELECT count(*)::int AS count FROM ${table}`);
      return row.count;
    },
    async [Symbol.asyncDispose]() {
      await sql.close();
      await drop();
    },
  };
}

/** The report of the command for each table: rows and checksums of the source and of the copy. */
function figures(output: string): Record<string, string[]> {
  const lines = output.split("\n").map((line) => line.trim().split(/\s{2,}/));
  return Object.fromEntries(
    lines.filter((cells) => cells.length === 5).map(([name = "", ...cells]) => [name, cells]),
  );
}

async function sayMany(person: Person, chat: { id: string }): Promise<void> {
  for (let done = 0; done < MANY; done += 50) {
    const lines = Array.from({ length: 50 }, (_, place) => `line ${done + place}`);
    await Promise.all(lines.map((line) => say(person, chat, line)));
  }
}

/** Starts the service on the migrated database. */
const startOn = (url: string, old: TestServer, env: Record<string, string> = {}) =>
  startServer({
    ...noRates,
    ...env,
    DATABASE_URL: url,
    PARLEY_MASTER_KEY: readFileSync(join(old.dataDir, "master.key"), "utf8"),
  });

/** Everything that one person can fetch. */
async function everythingOf(person: Person) {
  const view = await fetchView(person);
  const chats = Object.values(view);
  const answers = chats.flatMap(({ messages }) => messages).filter(({ turn }) => turn !== null);
  const groups = chats.filter(({ conversation }) => conversation.kind === "group");
  const { items: sessions } = await person.call("getSessions");
  return {
    view,
    chats: await pagesOf((at) => person.call("getChats", { limit: 2, ...at })),
    me: await person.call("getMe"),
    users: await pagesOf((at) => person.call("getUsers", { limit: 3, ...at })),
    agents: await person.call("getMyAgents"),
    usage: await person.call("getAgentUsage", {}),
    sessions: sessions.map(({ last_used_at: _, ...session }) => session),
    updates: await Promise.all(
      Object.keys(view).map((chat_id) => person.call("getUpdates", { chat_id, since_seq: 0 })),
    ),
    groupAgents: await Promise.all(
      groups.map(({ conversation: { id } }) => person.call("getGroupAgents", { chat_id: id })),
    ),
    receipts: await Promise.all(
      answers.map(({ id }) => person.call("getTurn", { message_id: id })),
    ),
    found: await Promise.all(
      ["hello", "cafe", "Überraschung", "line 10", "edited", "secret", "sandbox", "日本"].map(
        (query) => pagesOf((at) => search(person, { query, limit: 20, ...at })),
      ),
    ),
  };
}

/** People who have used every feature. */
async function liveInstallation(url: string) {
  const [alice, bob, carol] = await people(url, "alice", "bob", "carol");
  const direct = await alice.call("startChat", { usernames: [bob.username] });
  const group = await groupOf(alice, bob, carol);
  await alice.call("setChatTitle", { chat_id: group.id, title: "Café 'Ü' \"\\ 🙂" });
  const texts = [
    "hello, **world**",
    `O'Reilly \\ "quoted" \t tab\nand a second line, ${"long ".repeat(400)}`,
    "naïve café Überraschung 日本語 𝒳 👩‍👩‍👧‍👦",
    '<card title="a">{"json": [1, 2]}</card>',
    `@${bob.username} hello`,
  ];
  const said = [];
  for (const text of texts) said.push(await say(alice, group, text));
  const [first, second, third, fourth] = said;
  if (!first || !second || !third || !fourth) throw new Error("they were just said");
  await say(bob, direct, "hello alice");
  await bob.call("sendMessage", {
    chat_id: group.id,
    content: "a reply",
    client_msg_id: "it's mine",
    reply_to_id: first.id,
  });
  for (const person of [alice, bob, carol]) {
    await person.call("setMessageReaction", { message_id: first.id, emoji: "👍" });
  }
  await carol.call("setMessageReaction", { message_id: first.id, emoji: "❤️" });
  await alice.call("editMessage", { message_id: second.id, content: "edited once" });
  await alice.call("deleteMessages", { chat_id: group.id, message_ids: [fourth.id] });
  await carol.call("deleteMessagesForMe", { chat_id: group.id, message_ids: [third.id] });
  await bob.call("readChat", { chat_id: group.id, seq: first.seq });
  const signedOut = await signInAgain(bob);
  await post(url, "signOut", {}, signedOut);
  await signInAgain(bob);
  return { alice, bob, carol, direct, group, first, second, third, signedOut };
}

async function signInAgain({ url, username }: Person): Promise<string> {
  const { body } = await post(url, "signIn", { username, password: "correct horse battery" });
  if (!body.ok) throw new CallFailed(body);
  return checkedResult("signIn", body.result).access_token;
}

/** Adds Alice's sandbox agent to a group, and lets it answer once. */
async function sandboxAgent(alice: Person, group: { id: string }) {
  const agent = agentOf(alice, "gpt");
  await alice.call("setAgentKey", { provider: "gpt", api_key: "sandbox-alice" });
  await alice.call("setAgentProfile", {
    provider: "gpt",
    display_name: "Alice's",
    instructions: "Be brief.",
  });
  await alice.call("setAgentLimits", { provider: "gpt", daily_tokens: 1_000_000 });
  await alice.call("addGroupAgent", { chat_id: group.id, agent_username: agent });
  const quiet = await groupOf(alice);
  await alice.call("addGroupAgent", {
    chat_id: quiet.id,
    agent_username: agent,
    always_on: true,
  });
  const answer = await answered(alice, group, agent);
  await say(alice, group, '<button action="dismiss:it\'s">Dismiss</button>').then(({ id }) =>
    alice.call("sendComponentAction", {
      chat_id: group.id,
      message_id: id,
      action: "dismiss:it's",
    }),
  );
  await alice.call("sendComponentAction", {
    chat_id: group.id,
    message_id: answer.id,
    action: "form_submit:a",
    fields: { b: ["c"] },
  });
  return agent;
}

async function answered(person: Person, chat: { id: string }, agent: string) {
  await using socket = await person.connect();
  const trigger = await say(person, chat, `@${agent} hello sandbox`);
  return await answerTo(socket, trigger, agent);
}

/** Writes and changes continuously until it is stopped. Returns the number of operations. */
function busy(person: Person, chat: { id: string }, message: { id: string }) {
  let going = true;
  const run = async () => {
    let done = 0;
    while (going) {
      const own = await say(person, chat, `hello meanwhile ${done}`);
      await person.call("editMessage", { message_id: own.id, content: `edited meanwhile ${done}` });
      await person.call("setMessageReaction", { message_id: message.id, emoji: "🎉" });
      if (done % 3 === 0) {
        await person.call("deleteMessages", { chat_id: chat.id, message_ids: [own.id] });
      }
      done++;
    }
    return done;
  };
  const running = run();
  return {
    stop: () => {
      going = false;
      return running;
    },
  };
}

describe.skipIf(onSeveralNodes)("a migration from SQLite to PostgreSQL", () => {
  test("copies a running installation, and everyone finds all their data", async () => {
    await using sharedProvider = await startSharedProvider();
    const providers = providersAt(sharedProvider.url);
    await using server = await startServer({ ...noRates, ...providers });
    await using database = await newDatabase();
    const { alice, bob, carol, direct, group, ...rest } = await liveInstallation(server.url);
    const { first, second, third, signedOut } = rest;
    const agent = await sandboxAgent(alice, group);
    await sayMany(bob, direct);

    const erin = await signUp(server.url, "erin");
    const erins = agentOf(erin);
    await erin.call("setAgentKey", { provider: "claude", api_key: "erins-own-key" });
    const asked = await erin.call("startChat", { usernames: [erins] });
    await using witness = await erin.connect();
    await say(erin, asked, "a question");
    const call = await sharedProvider.nextCall("erins-own-key");
    await call.sendText("Half an ");
    await witness.event("events.messageDelta");
    const waiting = await say(erin, asked, "another question");

    // While the server runs and people write.
    const writing = busy(bob, group, third);
    const copied = await migrate(server.dataDir, database.url);
    expect(await writing.stop()).toBeGreaterThan(0);
    expect(copied).toMatchObject({ code: 0, errors: "" });
    expect(copied.output).toContain("Stop the server");
    expect(await database.count("messages")).toBeGreaterThan(MANY);

    // Copied rows are changed, deleted and inserted again.
    await alice.call("editMessage", { message_id: first.id, content: "edited after all" });
    await alice.call("deleteMessages", { chat_id: group.id, message_ids: [second.id] });
    for (let time = 0; time < 2; time++) {
      await bob.call("setMessageReaction", { message_id: first.id, emoji: "👍" });
    }
    await carol.call("leaveChat", { chat_id: group.id });
    await carol.call("setAgentKey", { provider: "gpt", api_key: "sandbox-carol" });
    await carol.call("removeAgentKey", { provider: "gpt" });
    await say(alice, group, "the last words before the move");
    const all = [alice, bob, carol];
    const before = await Promise.all(all.map(everythingOf));

    await server.stop();
    const file = readFileSync(join(server.dataDir, "parley.db"));
    const finished = await migrate(server.dataDir, database.url);
    expect(finished).toMatchObject({ code: 0, errors: "" });
    expect(finished.output).toContain("PARLEY_MASTER_KEY");
    expect(readFileSync(join(server.dataDir, "parley.db")).equals(file)).toBe(true);
    const told = figures(finished.output);
    expect(Object.keys(told)).toEqual(tablesOf(server));
    for (const [rows, copies, sum, sumOfCopy] of Object.values(told)) {
      expect([copies, sumOfCopy]).toEqual([rows, sum]);
    }

    await using moved = await startOn(database.url, server, providers);
    const there = all.map((person) => person.at(moved.url));
    expect(await Promise.all(there.map(everythingOf))).toEqual(before);
    expect((await post(moved.url, "getMe", {}, signedOut)).status).toBe(401);

    // The interrupted answer has its error, and the waiting question is answered.
    const erinThere = erin.at(moved.url);
    await using reader = await erinThere.connect();
    const next = await sharedProvider.nextCall("erins-own-key");
    await next.sendText("A whole answer");
    await next.complete();
    await answerTo(reader, waiting);
    const { items } = await erinThere.call("getChatHistory", { chat_id: asked.id });
    expect(items.map(({ content, turn }) => [content, turn?.error?.code ?? turn?.status])).toEqual([
      ["a question", undefined],
      ["Half an ", "interrupted"],
      ["another question", undefined],
      ["A whole answer", "complete"],
    ]);

    // The service works: keys open, and new ids do not collide with copied ones.
    const [aliceThere, bobThere] = there as [Person, Person];
    expect((await answered(aliceThere, group, agent)).turn?.status).toBe("complete");
    await bobThere.call("setMessageReaction", { message_id: first.id, emoji: "🚀" });
    const frank = await signUp(moved.url, "frank");
    const fresh = await groupOf(aliceThere, bobThere, frank);
    expect(await say(frank, fresh, "hello everybody")).toMatchObject({ seq: 1 });
  });

  test("copies accounts and groups that have files and tokens, and that change between two runs", async () => {
    await using server = await startServer(noRates);
    await using database = await newDatabase();
    const [alice, bob] = await people(server.url, "alice", "bob");
    const { agent, chat } = await externalAgent(alice);
    const group = await groupOf(alice, bob);
    const file = await upload(alice, group.id, "notes.txt", "bytes");
    await alice.call("sendMessage", { chat_id: group.id, content: "", file_ids: [file.id] });
    expect(await migrate(server.dataDir, database.url)).toMatchObject({ code: 0, errors: "" });

    await alice.call("updateMe", { display_name: "Alice Renamed" });
    await alice.call("updateAgent", { agent_username: agent.username, display_name: "Renamed" });
    await alice.call("setChatTitle", { chat_id: group.id, title: "renamed" });
    const before = await everythingOf(alice);
    await server.stop();
    const finished = await migrate(server.dataDir, database.url);
    expect(finished).toMatchObject({ code: 0, errors: "" });
    for (const [rows, copies, sum, sumOfCopy] of Object.values(figures(finished.output))) {
      expect([copies, sumOfCopy]).toEqual([rows, sum]);
    }
    await using moved = await startOn(database.url, server, { PARLEY_DATA: server.dataDir });
    expect(await everythingOf(alice.at(moved.url))).toEqual(before);
    expect(await (await fetch((await linkOf(bob.at(moved.url), file.id)).url)).text()).toBe(
      "bytes",
    );
    expect(await say(agent.at(moved.url), chat, "hello")).toMatchObject({ content: "hello" });
  });

  test("is not finished while the storage lacks files that the server kept elsewhere", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "parley-migrate-"));
    const files = { PARLEY_FILES: `disk:${join(dataDir, "elsewhere")}` };
    await using server = await startServer({ ...noRates, ...files, PARLEY_DATA: dataDir });
    await using database = await newDatabase();
    const alice = await signUp(server.url, "alice");
    const group = await groupOf(alice);
    const names = ["one.txt", "two.txt"];
    const sent = await Promise.all(names.map((name) => upload(alice, group.id, name, name)));
    const lost = "The storage of PARLEY_FILES lacks the bytes of 2 files";
    const first = await migrate(dataDir, database.url);
    expect(first).toMatchObject({ code: 0, errors: "" });
    expect(first.output).toContain(lost);
    await server.stop();
    expect(await refusal(dataDir, database.url)).toContain(lost);
    await expect(startOn(database.url, server)).rejects.toThrow("is not finished");

    const finished = await migrate(dataDir, database.url, files);
    expect(finished).toMatchObject({ code: 0, errors: "" });
    await using moved = await startOn(database.url, server, files);
    const links = sent.map(({ id }) => linkOf(alice.at(moved.url), id));
    const texts = (await Promise.all(links)).map(async ({ url }) => (await fetch(url)).text());
    expect(await Promise.all(texts)).toEqual(names);
  });

  test("copies webhooks, which receive what happens after it", async () => {
    const settings = { ...noRates, ...serviceKeySetting(), PARLEY_PRIVATE_ADDRESSES: "allow" };
    await using server = await startServer(settings);
    await using database = await newDatabase();
    await using receiver = startReceiver();
    const [alice, bob] = [await signUp(server.url, "alice"), await signUp(server.url, "bob")];
    const group = await groupOf(alice, bob);
    // The change log of the copy begins anew, before the position that the webhook has now.
    for (const text of ["one", "two", "three"]) await say(alice, group, text);
    const events = ["events.messageNew"];
    await new Backend(server.url).call("createWebhook", { url: receiver.url, events });
    await server.stop();
    expect(await migrate(server.dataDir, database.url)).toMatchObject({ code: 0, errors: "" });
    await using moved = await startOn(database.url, server, settings);
    await say(alice.at(moved.url), group, "after the move");
    await receiver.has(1);
    expect(receiver.contents()).toEqual(["after the move"]);
  });

  test("resumes after a killed run, and no server starts before it is complete", async () => {
    await using server = await startServer(noRates);
    await using database = await newDatabase();
    const [ann, bob] = await people(server.url, "ann", "bob");
    const chat = await ann.call("startChat", { usernames: [bob.username] });
    await sayMany(ann, chat);
    const before = await fetchView(ann);
    // SIGKILL: the latest changes are only in the write-ahead log.
    await server.kill();

    await (await openPostgresStore({ url: database.url, tls: false })).close();
    const { child, letGo } = await startBlockedRun(database, server.dataDir);
    child.kill("SIGKILL");
    await child.exited;
    await letGo();
    const half = await database.count("messages");
    expect(half).toBeGreaterThan(0);
    expect(half).toBeLessThan(MANY);
    await expect(startOn(database.url, server)).rejects.toThrow("is not finished");

    const finished = await migrate(server.dataDir, database.url);
    expect(finished).toMatchObject({ code: 0, errors: "" });
    expect(finished.output).toContain(`messages: 1,100 rows, ${MANY - half} written`);
    await using moved = await startOn(database.url, server);
    expect(await fetchView(ann.at(moved.url))).toEqual(before);
  });

  test("corrects rows that were changed in the copy meanwhile", async () => {
    await using server = await startServer(noRates);
    await using database = await newDatabase();
    const { alice, bob, carol } = await liveInstallation(server.url);
    expect(await migrate(server.dataDir, database.url)).toMatchObject({ code: 0 });
    const before = await Promise.all([alice, bob, carol].map(everythingOf));
    await server.stop();
    for (const statement of [
      "UPDATE messages SET content = 'tampered' WHERE id = 1",
      "DELETE FROM messages WHERE id = 3",
      "UPDATE messages SET id = 1000000, uuid = gen_random_uuid() WHERE id = 5",
      "UPDATE search SET words = 'tampered' WHERE message_id = 6",
      "INSERT INTO search VALUES (2000000, 'hello')",
      "UPDATE members SET unread_mentions = 7",
      "DELETE FROM accounts WHERE id > 2",
      "INSERT INTO reactions SELECT 900, message_id, account_id, '💥', 0 FROM reactions LIMIT 1",
    ]) {
      await database.sql.unsafe(statement);
    }
    const finished = await migrate(server.dataDir, database.url);
    expect(finished).toMatchObject({ code: 0, errors: "" });
    expect(finished.output).toMatch(/reactions: \d+ rows, 0 written, 1 removed/);
    await using moved = await startOn(database.url, server);
    const after = [alice, bob, carol].map((person) => everythingOf(person.at(moved.url)));
    expect(await Promise.all(after)).toEqual(before);
  });

  test("reports the table that differs, and leaves the copy incomplete", async () => {
    await using server = await startServer(noRates);
    await using database = await newDatabase();
    const { alice } = await liveInstallation(server.url);
    const before = await fetchView(alice);
    expect(await migrate(server.dataDir, database.url)).toMatchObject({ code: 0 });
    await server.stop();
    await database.sql.unsafe(`
      CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN NEW.display_name := 'spoilt'; RETURN NEW; END $$;
      CREATE TRIGGER spoil BEFORE INSERT ON accounts FOR EACH ROW EXECUTE FUNCTION spoil();
      UPDATE accounts SET display_name = 'tampered' WHERE id = 1`);
    const failed = await migrate(server.dataDir, database.url);
    expect(failed.code).toBe(1);
    expect(failed.errors).toBe("Parley: the copy is not the same as its source: accounts\n");
    const [rows, copies, sum, sumOfCopy] = figures(failed.output).accounts ?? [];
    expect(copies).toBe(rows);
    expect(sumOfCopy).not.toBe(sum);
    await expect(startOn(database.url, server)).rejects.toThrow("is not finished");

    await database.sql.unsafe("DROP TRIGGER spoil ON accounts");
    expect(await migrate(server.dataDir, database.url)).toMatchObject({ code: 0, errors: "" });
    await using moved = await startOn(database.url, server);
    expect(await fetchView(alice.at(moved.url))).toEqual(before);
  });

  test("refuses a database that has other data, or is in use", async () => {
    await using server = await startServer();
    await using other = await startServer();
    await using copy = await newDatabase();
    await using used = await newDatabase();
    await using foreign = await newDatabase();
    await signUp(server.url);
    await signUp(other.url);
    expect(await migrate(server.dataDir, copy.url)).toMatchObject({ code: 0 });
    expect(await refusal(other.dataDir, copy.url)).toContain("a copy of another installation");
    await server.stop();
    expect(await migrate(server.dataDir, copy.url)).toMatchObject({ code: 0 });
    expect(await refusal(server.dataDir, copy.url)).toContain("was finished at");

    await using running = await startServer({ DATABASE_URL: used.url });
    expect(await refusal(server.dataDir, used.url)).toContain("a server uses");
    await signUp(running.url);
    await running.stop();
    expect(await refusal(server.dataDir, used.url)).toContain("is in use");
    expect(await used.count("accounts")).toBeGreaterThan(0);

    await foreign.sql.unsafe("CREATE TABLE accounts (id int)");
    expect(await refusal(server.dataDir, foreign.url)).toContain("holds other tables");
    const nowhere = foreign.url.replace(/[^/]+$/, "nowhere");
    expect(await refusal(server.dataDir, nowhere)).toContain("cannot be reached");
  });

  test("refuses a source that it cannot copy", async () => {
    await using server = await startServer();
    await using database = await newDatabase();
    const { dataDir } = server;
    expect(await refusal(dataDir, database.url)).toContain("nobody has signed up");
    expect(await refusal(join(dataDir, "x"), database.url)).toContain("no SQLite database");
    expect(await refusal(dataDir, "")).toContain("DATABASE_URL");
    await server.stop();
    withDatabase(server, (db) => db.run("PRAGMA user_version = 99"));
    expect(await refusal(dataDir, database.url)).toContain("a newer version of Parley (schema 99)");
    withDatabase(server, (db) => db.run("PRAGMA user_version = 0"));
    expect(await refusal(dataDir, database.url)).toContain("an older version of Parley");
  });

  test("lets only the latest of two runs write", async () => {
    await using database = await newDatabase();
    const columns = ["account_id", "conversation_id", "seq", "at_seq", "own_seq"];
    const table = { name: "hidden", columns, key: columns.slice(0, 3) };
    const row = { account_id: 1, conversation_id: 2, seq: 3, at_seq: 4, own_seq: 1 };
    const first = await openPostgresTarget({ url: database.url, tls: false });
    await first.claim("somewhere");
    expect(await first.insert(table, [row])).toBe(1);
    const second = await openPostgresTarget({ url: database.url, tls: false });
    await second.claim("somewhere");
    await expect(first.insert(table, [{ ...row, seq: 5 }])).rejects.toThrow("taken over");
    expect(await second.insert(table, [{ ...row, seq: 5 }])).toBe(1);
    expect(await second.rows(table, { after: null, upTo: [1, 2, 4] })).toEqual([row]);
    await first.close();
    await second.close();
  });
});

/** The error of a run that must change nothing. */
async function refusal(dataDir: string, url: string): Promise<string> {
  const { code, errors } = await migrate(dataDir, url);
  expect(code).toBe(1);
  return errors;
}

function withDatabase<Result>(server: TestServer, work: (db: Database) => Result): Result {
  using db = databaseOf(server);
  return work(db);
}

/** The tables that the command copies. */
const tablesOf = (server: TestServer): string[] =>
  withDatabase(server, (db) =>
    db
      .query<{ name: string }, []>(
        "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name",
      )
      .all()
      .map(({ name }) => name)
      .filter((name) => !name.startsWith("sqlite_") && !NOT_COPIED.includes(name)),
  );

/** Tables that the new installation derives or starts anew. */
const NOT_COPIED = [
  "search_changes",
  "account_names",
  "changes",
  "changes_pruned",
  "subscriptions",
];

/** A run that blocks while it copies messages, on a row that another transaction inserts. */
async function startBlockedRun(
  { url, sql }: Awaited<ReturnType<typeof newDatabase>>,
  dataDir: string,
) {
  const holder = new SQL({ url, max: 1 });
  await holder.unsafe("BEGIN");
  await holder.unsafe(
    `INSERT INTO messages (id, uuid, conversation_id, seq, version, sender_id, by_agent, human_n,
       agent_n, content, created_at) VALUES (700, gen_random_uuid(), 0, 0, 0, 0, false, 0, 0, '', 0)`,
  );
  const child = spawnMigration(dataDir, url);
  for (;;) {
    const [waiting] = await sql.unsafe(
      `SELECT 1 FROM pg_stat_activity WHERE datname = current_database()
       AND application_name = 'parley migrate' AND wait_event_type = 'Lock'`,
    );
    if (waiting) return { child, letGo: () => holder.close() };
    if (child.exitCode !== null) throw new Error("the run has ended before");
    await Bun.sleep(5);
  }
}
