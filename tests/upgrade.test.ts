import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Message } from "@parley/protocol";
import { CallFailed, checkedResult, Person, post, search } from "@parley/testkit/client.ts";
import { type SharedPostgres, sharedPostgres } from "@parley/testkit/postgres.ts";
import { type Environment, startServer, type TestServer } from "@parley/testkit/server.ts";
import { SQL } from "bun";

/**
 * Data as version 0.1.0 wrote it: Ada, Ben and Cleo in the group «Engines» with Ada's agent, whose
 * key is a sandbox key; one message edited, one deleted, one hidden from Ada, one with reactions.
 */
const STORED = join(import.meta.dir, "fixtures/0.1.0");
const MASTER_KEY = readFileSync(join(STORED, "master.key"), "utf8").trim();

let postgres: SharedPostgres;
beforeAll(async () => {
  postgres = await sharedPostgres();
});
afterAll(() => postgres[Symbol.asyncDispose]());

async function onSqlite(): Promise<Environment> {
  const folder = mkdtempSync(join(tmpdir(), "parley-upgrade-"));
  for (const name of ["parley.db", "parley-search.db", "master.key"]) {
    cpSync(join(STORED, name), join(folder, name));
  }
  chmodSync(join(folder, "master.key"), 0o600);
  return { PARLEY_DATA: folder };
}

async function onPostgres(): Promise<Environment> {
  const { url } = await postgres.database();
  await using sql = new SQL({ url, max: 1 });
  await sql.unsafe(readFileSync(join(STORED, "postgres.sql"), "utf8"));
  return { DATABASE_URL: url, PARLEY_MASTER_KEY: MASTER_KEY };
}

for (const [store, stored] of Object.entries({ SQLite: onSqlite, PostgreSQL: onPostgres })) {
  describe(`data of version 0.1.0 on ${store}`, () => {
    let server: TestServer;
    let ada: Person;
    let ben: Person;
    let chat_id: string;

    beforeAll(async () => {
      server = await startServer(await stored());
      ada = await signIn(server.url, "ada", "correct horse battery");
      ben = await signIn(server.url, "ben", "battery staple horse");
      const { items } = await ben.call("getChats");
      chat_id = items.find(({ title }) => title === "Engines")?.id ?? "";
    });
    afterAll(async () => {
      await server[Symbol.asyncDispose]();
      rmSync(server.dataDir, { recursive: true, force: true });
    });

    test("people sign in with their passwords and find their conversations", async () => {
      const { items } = await ada.call("getChats");
      expect(items.map(({ kind, title }) => [kind, title])).toEqual([
        ["direct", null],
        ["group", "Engines"],
      ]);
      const { participants, admin, reads, unread } = await ben.call("getChat", { chat_id });
      expect(participants.map(({ username }) => username).toSorted()).toEqual([
        "ada",
        "ada:claude",
        "ben",
        "cleo",
      ]);
      expect(admin).toBe("ada");
      expect(reads.ben).toBe(7);
      expect(unread).toEqual({ human: 2, agent: 1, mentions: 1 });
    });

    test("messages keep their edits, deletions, reactions and answers", async () => {
      const { items } = await ben.call("getChatHistory", { chat_id });
      expect(items.map(({ seq, content }) => [seq, content.split("\n")[0]])).toEqual([
        [1, "Welcome to the analytical engine."],
        [2, "Thank you, @ada!"],
        [3, "Hello, edited"],
        [7, "hidden from Ada"],
        [10, "@ada:claude say hello"],
        [11, expect.stringMatching(/^Hello, ada!/)],
        [13, "@ben are you there? Babbage is looking for you"],
      ]);
      expect(items[0]?.reactions).toEqual([{ emoji: "👍", count: 2, reacted: true }]);
      expect(items[1]?.reply_to_id).toBe(items[0]?.id ?? "");
      expect(items[5]?.turn).toMatchObject({ status: "complete", triggered_by: items[4]?.id });
      const { items: adas } = await ada.call("getChatHistory", { chat_id });
      expect(adas.map(({ seq }) => seq)).toEqual([1, 2, 3, 10, 11, 13]);
    });

    test("search finds the messages", async () => {
      const { items } = await search(ada, { query: "babbage" });
      expect(items.map(({ message }) => message.seq)).toEqual([13]);
    });

    test("resending an old message creates no second one", async () => {
      const again = await ada.call("sendMessage", {
        chat_id,
        content: "Welcome to the analytical engine.",
        client_msg_id: "first",
      });
      expect(again.seq).toBe(1);
    });

    test("agents keep their key, their profile and their limits, and answer", async () => {
      const { items } = await ada.call("getMyAgents");
      expect(items.find(({ provider }) => provider === "claude")).toMatchObject({
        display_name: "Ada's Claude",
        key_configured: true,
        instructions: "Be brief.",
        limits: { daily_tokens: 50_000, turns_per_minute: null },
      });
      await using socket = await ada.connect();
      const question = await socket.call("sendMessage", { chat_id, content: "@ada:claude hello" });
      const answered = ({ turn }: Message) => turn?.triggered_by === question.id;
      const complete = () =>
        socket.eventsNamed("events.messageComplete").find(({ params }) => answered(params));
      const answer = await socket.until(complete, "the answer");
      expect(answer.params.turn?.status).toBe("complete");
    });

    test("everything that can be fetched has the shape of the contract", async () => {
      const { id: message_id } = (await ben.call("getChatHistory", { chat_id }))
        .items[5] as Message;
      await ben.call("getTurn", { message_id });
      await ben.call("getGroupAgents", { chat_id });
      await ben.call("getUpdates", { chat_id, since_seq: 0 });
      await ben.call("getUpdates", { known: { [chat_id]: 3 } });
      await ben.call("getSessions");
      await ben.call("getUsers", { query: "lovelace" });
      await ada.call("getAgentUsage");
    });
  });
}

async function signIn(url: string, username: string, password: string): Promise<Person> {
  const { body } = await post(url, "signIn", { username, password });
  if (!body.ok) throw new CallFailed(body);
  const { access_token, account } = checkedResult("signIn", body.result);
  return new Person(url, access_token, account);
}
