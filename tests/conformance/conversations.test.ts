import { afterAll, describe, expect, test } from "bun:test";
import {
  failure,
  groupOf,
  pagesOf,
  people,
  Socket,
  say,
  signUp,
  TIMESTAMP,
  transports,
  UUID_V7,
} from "@parley/testkit/client.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";

const server = await startServer(noRates);
const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");
afterAll(() => server[Symbol.asyncDispose]());

const names = (accounts: readonly { username: string }[]) =>
  accounts.map(({ username }) => username);

describe.each(transports)("startChat over %s", (transport) => {
  test("creates a group and returns it with all fields", async () => {
    await using caller = await alice.via(transport);
    const usernames = [bob.username, carol.username];
    const chat = await caller.call("startChat", { usernames });
    expect(chat).toEqual({
      id: expect.stringMatching(UUID_V7),
      kind: "group",
      title: null,
      participants: [alice.account, bob.account, carol.account],
      created_by: alice.account,
      admin: alice.username,
      created_at: expect.stringMatching(TIMESTAMP),
      updated_at: expect.stringMatching(TIMESTAMP),
      seq: expect.any(Number),
      last_message: null,
      participant_count: 3,
      picture_id: null,
      unread_count: 0,
      unread: { human: 0, agent: 0, mentions: 0 },
      last_read_seq: chat.seq,
      own_seq: expect.any(Number),
      state: { notify: "all", muted_until: null, pinned: false, archived: false },
      cleared_seq: 0,
    });
  });

  test("creates the direct conversation of two people once, whoever starts it", async () => {
    const [one, other] = await people(server.url, "one", "other");
    await using caller = await one.via(transport);
    const chat = await caller.call("startChat", { usernames: [other.username] });
    expect(chat).toMatchObject({ kind: "direct", title: null, participant_count: 2 });
    await using back = await other.via(transport);
    await using listening = await one.connect();
    const again = await back.call("startChat", { usernames: [one.username.toUpperCase()] });
    expect(again.id).toBe(chat.id);
    expect((await caller.call("startChat", { usernames: [other.username] })).id).toBe(chat.id);
    expect(await listening.settledEvents("events.conversationNew")).toEqual([]);
  });

  test("creates one direct conversation for two concurrent calls", async () => {
    const [one, other] = await people(server.url, "one", "other");
    await using first = await one.via(transport);
    await using second = await other.via(transport);
    const started = await Promise.all([
      first.call("startChat", { usernames: [other.username] }),
      second.call("startChat", { usernames: [one.username] }),
      first.call("startChat", { usernames: [other.username] }),
    ]);
    expect(new Set(started.map(({ id }) => id)).size).toBe(1);
  });

  test.each([
    ["with a title, of two", { usernames: ["bob"], title: "Plans" }],
    ["with a title, of one", { usernames: [], title: "Notes" }],
    ["by kind, of two", { usernames: ["bob"], kind: "group" as const }],
    ["by kind, of one", { usernames: [], kind: "group" as const }],
  ])("creates a new group %s every time", async (_, { usernames, ...rest }) => {
    await using caller = await alice.via(transport);
    const input = { ...rest, usernames: usernames.map(() => bob.username) };
    const [one, other] = [
      await caller.call("startChat", input),
      await caller.call("startChat", input),
    ];
    expect(one).toMatchObject({ kind: "group", participant_count: 1 + usernames.length });
    expect(one.title).toBe("title" in rest ? rest.title : null);
    expect(other.id).not.toBe(one.id);
  });

  test("ignores duplicates and the caller's own username", async () => {
    await using caller = await alice.via(transport);
    const chat = await caller.call("startChat", {
      usernames: [bob.username, bob.username.toUpperCase(), alice.username],
      kind: "group",
    });
    expect(names(chat.participants)).toEqual([alice.username, bob.username]);
  });

  test("needs another participant, a title or the kind group", async () => {
    await using caller = await alice.via(transport);
    for (const usernames of [[], [alice.username]]) {
      const failed = await failure(caller.call("startChat", { usernames }));
      expect(failed.parameters?.fields).toHaveProperty("usernames");
    }
  });

  test("lets only the owner invite an agent", async () => {
    await using owner = await alice.via(transport);
    const agent = `${alice.username}:claude`;
    const direct = await owner.call("startChat", { usernames: [agent] });
    expect(direct.kind).toBe("direct");
    expect(direct.participants).toContainEqual({
      username: agent,
      kind: "agent",
      display_name: expect.any(String),
      version: 0,
    });
    await using other = await bob.via(transport);
    const before = await overviewOf(bob);
    for (const kind of [undefined, "group" as const]) {
      const invite = other.call("startChat", { usernames: [agent], ...(kind && { kind }) });
      expect((await failure(invite)).code).toBe("forbidden");
    }
    expect(await overviewOf(bob)).toEqual(before);
  });

  test("is 404 and names the unknown usernames", async () => {
    await using caller = await alice.via(transport);
    const usernames = [bob.username, "nobody_one", "nobody_two"];
    const failed = await failure(caller.call("startChat", { usernames }));
    expect(failed.code).toBe("not_found");
    expect(failed.message).toContain("nobody_one");
    expect(failed.message).toContain("nobody_two");
    expect(failed.message).not.toContain(bob.username);
  });

  test("notifies the caller's other clients and the other people, who receive the events that follow", async () => {
    await using caller = await alice.via(transport);
    await using own = await alice.connect();
    await using invited = await bob.connect();
    await using outsider = await carol.connect();
    const chat = await caller.call("startChat", { usernames: [bob.username], kind: "group" });
    const { unread_count: _, unread: __, last_read_seq: ___, own_seq: ____, ...more } = chat;
    const { state: _____, cleared_seq: ______, ...shared } = more;
    for (const socket of [own, invited]) {
      expect(await socket.settledEvents("events.conversationNew")).toEqual([
        {
          method: "events.conversationNew",
          params: shared,
          at: { conversation_id: chat.id, seq: chat.seq },
        },
      ]);
    }
    if (caller instanceof Socket)
      expect(await caller.settledEvents("events.conversationNew")).toEqual([]);
    const { id } = await say(bob, chat, "hello");
    for (const socket of [own, invited, ...(caller instanceof Socket ? [caller] : [])]) {
      expect((await socket.event("events.messageNew")).params.id).toBe(id);
    }
    expect(outsider.eventsNamed("events.conversationNew")).toEqual([]);
    expect(await outsider.settledEvents("events.messageNew")).toEqual([]);
  });
});

const overviewOf = async (person: typeof alice) =>
  names((await person.call("getChats", { limit: 100 })).items.flatMap((chat) => chat.participants));

describe.each(transports)("getChats over %s", (transport) => {
  test("lists the caller's own conversations, latest activity first", async () => {
    const reader = await signUp(server.url, "reader");
    const [one, two, three] = [
      await groupOf(alice, reader),
      await groupOf(alice, reader),
      await groupOf(alice, reader),
    ];
    await groupOf(alice, bob);
    await using caller = await reader.via(transport);
    const ids = async () => (await caller.call("getChats", {})).items.map(({ id }) => id);
    expect(await ids()).toEqual([three.id, two.id, one.id]);
    await server.moveClock(1);
    await say(alice, one, "hello");
    expect(await ids()).toEqual([one.id, three.id, two.id]);
    await server.moveClock(1);
    await alice.call("setChatTitle", { chat_id: two.id, title: "new" });
    expect(await ids()).toEqual([two.id, one.id, three.id]);
  });

  test("shows each conversation as getChat does, with the caller's own counts", async () => {
    const reader = await signUp(server.url, "reader");
    const chat = await groupOf(alice, reader);
    const sent = await say(alice, chat, `hello @${reader.username}`);
    await using caller = await reader.via(transport);
    const { items, next_cursor } = await caller.call("getChats", {});
    const { reads: _, ...expected } = await reader.call("getChat", { chat_id: chat.id });
    expect(items).toEqual([expected]);
    expect(next_cursor).toBeNull();
    expect(items[0]).toMatchObject({
      last_message: sent,
      seq: sent.seq,
      updated_at: sent.created_at,
      unread_count: 1,
      unread: { human: 1, agent: 0, mentions: 1 },
      last_read_seq: chat.seq,
      own_seq: expect.any(Number),
    });
  });

  test("pages through all conversations without gaps or repeats", async () => {
    const reader = await signUp(server.url, "reader");
    const made: string[] = [];
    for (let n = 0; n < 5; n++) made.unshift((await groupOf(reader)).id);
    await using caller = await reader.via(transport);
    const pages = await pagesOf((place) => caller.call("getChats", { limit: 2, ...place }));
    expect(pages.map((page) => page.length)).toEqual([2, 2, 1]);
    expect(pages.flat().map(({ id }) => id)).toEqual(made);
  });

  test("is empty for a new account, and refuses a forged cursor", async () => {
    const reader = await signUp(server.url, "reader");
    await using caller = await reader.via(transport);
    expect(await caller.call("getChats", {})).toEqual({ items: [], next_cursor: null });
    const failed = await failure(caller.call("getChats", { cursor: "nonsense" }));
    expect(failed.parameters?.fields).toHaveProperty("cursor");
  });
});

describe.each(transports)("getChat over %s", (transport) => {
  test("shows the read position of each person", async () => {
    const chat = await groupOf(alice, bob, { username: `${alice.username}:gpt` });
    const { seq } = await say(alice, chat, "hello");
    await using caller = await bob.via(transport);
    const { reads } = await caller.call("getChat", { chat_id: chat.id });
    expect(reads).toMatchObject({ [alice.username]: seq, [bob.username]: chat.seq });
  });

  test("is 404 for an unknown conversation and 403 for one of other people", async () => {
    const chat = await groupOf(alice, bob);
    await using stranger = await carol.via(transport);
    const get = (chat_id: string) => failure(stranger.call("getChat", { chat_id }));
    expect((await get(Bun.randomUUIDv7())).code).toBe("not_found");
    expect((await get(chat.id)).code).toBe("forbidden");
  });
});

test("getChats shows at most 50 participants of a group, getChat all of them", async () => {
  const provider = {
    display_name: "Model",
    protocol: "openai",
    base_url: "http://127.0.0.1:9",
    model: "m",
  };
  const ids = Array.from({ length: 59 }, (_, n) => `p${n}`);
  await using crowded = await startServer({
    PARLEY_PROVIDERS: JSON.stringify(Object.fromEntries(ids.map((id) => [id, provider]))),
  });
  const owner = await signUp(crowded.url, "owner");
  const agents = ids.map((id) => ({ username: `${owner.username}:${id}` }));
  const { id: chat_id } = await groupOf(owner, ...agents);
  const [listed] = (await owner.call("getChats", {})).items;
  expect(listed?.participants).toHaveLength(50);
  expect(listed?.participant_count).toBe(60);
  const whole = await owner.call("getChat", { chat_id });
  expect(names(whole.participants)).toEqual(names([owner, ...agents]));
  expect(whole.participant_count).toBe(60);
});
