import { afterAll, describe, expect, test } from "bun:test";
import type { EventFrame, Message } from "@parley/protocol";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import {
  agentOf,
  answerTo,
  groupOf,
  outcome,
  type Person,
  people,
  say,
  search,
  transports,
} from "@parley/testkit/client.ts";
import { claim, complete, externalAgent } from "@parley/testkit/external-agents.ts";
import { upload } from "@parley/testkit/files.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { until } from "@parley/testkit/until.ts";

const server = await startServer({
  ...serviceKeySetting(),
  // The clock is moved by hours.
  PARLEY_LIMITS: JSON.stringify({
    ...JSON.parse(noRates.PARLEY_LIMITS ?? "{}"),
    confirm_minutes: 1440,
  }),
});
afterAll(() => server[Symbol.asyncDispose]());
const [alice, bob, carol] = await people(server.url, "alice", "bob", "carol");

const HOUR_MS = 3_600_000;
const inAnHour = () => new Date(server.now() + HOUR_MS).toISOString();
const get = (who: Person, chat_id: string) => who.call("getChat", { chat_id });
const stateOf = async (who: Person, chat_id: string) => (await get(who, chat_id)).state;
const listOf = async (who: Person, archived?: boolean) =>
  (await who.call("getChats", { ...(archived !== undefined && { archived }) })).items.map(
    ({ id }) => id,
  );
const historyOf = async (who: Person, chat_id: string) =>
  (await who.call("getChatHistory", { chat_id })).items.map(({ content }) => content);
const found = async (who: Person, query: string) => (await search(who, { query })).items;
/** What a client of somebody that was away since `own_since` is told. */
async function since(who: Person, own_since: number, known?: Record<string, number>) {
  const page = await who.call("getUpdates", { own_since, ...(known && { known }) });
  if (!("states" in page)) throw new Error("getUpdates did not compare");
  return page;
}
const ownSeq = async (who: Person) => (await since(who, 0)).own_seq;
const archive = (who: Person, chat_id: string, more = {}) =>
  who.call("setChatState", { chat_id, archived: true, ...more });
const DEFAULTS = { notify: "all", muted_until: null, pinned: false, archived: false } as const;

describe.each(transports)("setChatState over %s", (transport) => {
  test("changes what is given, for the caller alone", async () => {
    const { id: chat_id, state, cleared_seq } = await groupOf(alice, bob);
    expect([state, cleared_seq]).toEqual([DEFAULTS, 0]);
    await using caller = await bob.via(transport);
    const muted_until = inAnHour();
    const set = await caller.call("setChatState", { chat_id, notify: "none", muted_until });
    expect(set.state).toEqual({ ...DEFAULTS, notify: "none", muted_until });
    await caller.call("setChatState", { chat_id, pinned: true, archived: true });
    const all = { notify: "none", muted_until, pinned: true, archived: true } as const;
    expect(await stateOf(bob, chat_id)).toEqual(all);
    expect(await stateOf(alice, chat_id)).toEqual(DEFAULTS);
    await caller.call("setChatState", { chat_id, muted_until: null });
    expect(await stateOf(bob, chat_id)).toEqual({ ...all, muted_until: null });
  });

  test("tells the caller's own clients, once for each change, and those that were away", async () => {
    const { id: chat_id } = await groupOf(alice, bob);
    const before = await ownSeq(bob);
    await using caller = await bob.via(transport);
    await using own = await bob.connect();
    await using other = await alice.connect();
    await caller.call("setChatState", { chat_id, pinned: true });
    await caller.call("setChatState", { chat_id, pinned: true });
    const state = { ...DEFAULTS, pinned: true };
    const params = { conversation_id: chat_id, state, last_read_seq: 0 };
    const told = { method: "events.chatStateUpdated", params, own_seq: before + 1 } as const;
    const isHere = (each: { conversation_id: string }) => each.conversation_id === chat_id;
    expect(await own.settledEvents("events.chatStateUpdated", isHere)).toEqual([told]);
    expect(await other.settledEvents("events.chatStateUpdated", isHere)).toEqual([]);
    const { states, own_seq } = await since(bob, before);
    expect(states).toEqual([{ ...params, cleared_seq: 0 }]);
    expect(own_seq).toBe(before + 1);
    expect((await since(bob, own_seq)).states).toEqual([]);
    expect((await get(bob, chat_id)).seq).toBe((await get(alice, chat_id)).seq);
  });
});

describe("setChatState", () => {
  test("refuses a call without a field, wrong values, and whoever takes no part", async () => {
    const { id: chat_id } = await groupOf(alice);
    expect(await outcome(alice.call("setChatState", { chat_id }))).toBe("bad_request");
    for (const wrong of [{ notify: "some" }, { muted_until: "soon" }, { pinned: "yes" }]) {
      const call = alice.call("setChatState", { chat_id, ...wrong } as never);
      expect(await outcome(call)).toBe("bad_request");
    }
    expect(await outcome(bob.call("setChatState", { chat_id, pinned: true }))).toBe("forbidden");
    const nowhere = Bun.randomUUIDv7();
    const call = bob.call("setChatState", { chat_id: nowhere, pinned: true });
    expect(await outcome(call)).toBe("not_found");
  });

  test("knows the level from the number of people, until one is set", async () => {
    const backend = new Backend(server.url);
    const users = Array.from({ length: 20 }, (_, n) => ({ external_id: `level ${n}` }));
    const { items } = await backend.call("upsertUsers", { users });
    const usernames = items.map(({ account }) => account.username);
    const chat = await alice.call("startChat", { usernames: usernames.slice(1), kind: "group" });
    const add = (usernames: string[]) =>
      alice.call("addChatMembers", { chat_id: chat.id, usernames });
    expect((await add([agentOf(alice)])).state?.notify).toBe("all");
    expect((await add(usernames.slice(0, 1))).state?.notify).toBe("mentions");
    await alice.call("setChatState", { chat_id: chat.id, notify: "all" });
    expect((await stateOf(alice, chat.id))?.notify).toBe("all");
    const username = usernames[0] as string;
    await alice.call("setChatState", { chat_id: chat.id, notify: "mentions" });
    await alice.call("removeChatMember", { chat_id: chat.id, username });
    expect((await stateOf(alice, chat.id))?.notify).toBe("mentions");
  });

  test("a mute of the past is none, and one ends without an event", async () => {
    const { id: chat_id } = await groupOf(alice);
    const past = new Date(server.now() - 1000).toISOString();
    const set = (muted_until: string) => alice.call("setChatState", { chat_id, muted_until });
    expect((await set(past)).state?.muted_until).toBeNull();
    await using own = await alice.connect();
    await set(inAnHour());
    await server.moveClock(HOUR_MS + 1000);
    expect((await stateOf(alice, chat_id))?.muted_until).toBeNull();
    const isHere = (each: { conversation_id: string }) => each.conversation_id === chat_id;
    expect(await own.settledEvents("events.chatStateUpdated", isHere)).toHaveLength(1);
  });

  test("at most 20 conversations are pinned", async () => {
    const [dan] = await people(server.url, "dan");
    const ids: string[] = [];
    for (let n = 0; n < 21; n++) ids.push((await groupOf(dan)).id);
    const pin = (chat_id: string, pinned: boolean) => dan.call("setChatState", { chat_id, pinned });
    for (const id of ids.slice(0, 20)) await pin(id, true);
    expect(await outcome(pin(ids[20] as string, true))).toBe("conflict");
    expect((await stateOf(dan, ids[20] as string))?.pinned).toBe(false);
    await pin(ids[0] as string, false);
    await pin(ids[20] as string, true);
    const unpinned = { ...DEFAULTS, pinned: true };
    expect(await stateOf(dan, ids[20] as string)).toEqual(unpinned);
  });

  test("leaving forgets it", async () => {
    const { id: chat_id } = await groupOf(alice, bob);
    await bob.call("setChatState", { chat_id, notify: "none", pinned: true, archived: true });
    await bob.call("leaveChat", { chat_id });
    await alice.call("addChatMembers", { chat_id, usernames: [bob.username] });
    expect(await stateOf(bob, chat_id)).toEqual(DEFAULTS);
  });

  test("agents have no view of their own", async () => {
    const { agent, chat } = await externalAgent(alice);
    const seen = await get(agent, chat.id);
    expect("state" in seen || "cleared_seq" in seen).toBe(false);
    expect(await outcome(agent.call("setChatState", { chat_id: chat.id, pinned: true }))).toBe(
      "forbidden",
    );
    expect((await since(agent, 0)).states).toEqual([]);
  });
});

describe("an archive", () => {
  test("is what getChats lists, or leaves out, in the order of all", async () => {
    const [dan] = await people(server.url, "dan");
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) ids.unshift((await groupOf(dan, bob)).id);
    await archive(dan, ids[1] as string);
    expect(await listOf(dan)).toEqual(ids);
    expect(await listOf(dan, true)).toEqual([ids[1] as string]);
    expect(await listOf(dan, false)).toEqual([ids[0], ids[2]] as string[]);
    const first = await dan.call("getChats", { archived: false, limit: 1 });
    const next = await dan.call("getChats", {
      archived: false,
      limit: 1,
      cursor: first.next_cursor ?? "",
    });
    expect(next.items.map(({ id }) => id)).toEqual([ids[2] as string]);
  });

  test("ends with a message of somebody else, and chatStateUpdated says so", async () => {
    const chat = await groupOf(alice, bob, carol);
    await archive(alice, chat.id);
    await archive(carol, chat.id);
    const before = await ownSeq(alice);
    await using own = await alice.connect();
    const message = await say(bob, chat, "hello");
    const { params, own_seq } = await own.event(
      "events.chatStateUpdated",
      ({ conversation_id }) => conversation_id === chat.id,
    );
    expect(params).toEqual({ conversation_id: chat.id, state: DEFAULTS, last_read_seq: 0 });
    expect(own_seq).toBe(before + 1);
    const place = (name: string) => own.events.findIndex(({ method }) => method === name);
    expect(place("events.messageNew")).toBeLessThan(place("events.chatStateUpdated"));
    expect((await since(alice, before)).states).toMatchObject([{ conversation_id: chat.id }]);
    expect((await stateOf(carol, chat.id))?.archived).toBe(false);
    expect(message.seq).toBe(1);
  });

  test("ends with a message of one's own, of an agent, and of a hook", async () => {
    const chat = await groupOf(alice, bob);
    const isArchived = async () => (await stateOf(alice, chat.id))?.archived;
    await archive(alice, chat.id);
    await say(alice, chat, "mine");
    expect(await isArchived()).toBe(false);

    await alice.call("setAgentKey", { provider: "claude", api_key: "sandbox-0123456789" });
    await alice.call("addGroupAgent", { chat_id: chat.id, agent_username: agentOf(alice) });
    await using own = await alice.connect();
    const asked = await say(bob, chat, `@${agentOf(alice)} hello`);
    await answerTo(own, asked);
    expect(await isArchived()).toBe(false);

    const { url } = await alice.call("createIncomingHook", { chat_id: chat.id, name: "news" });
    await archive(alice, chat.id);
    await fetch(url, { method: "POST", body: JSON.stringify({ text: "news" }) });
    await until(async () => (await isArchived()) === false, "the end of the archive");
  });

  test("stays for what is imported, for blocked people, and where one is notified of nothing", async () => {
    const chat = await groupOf(alice, bob, carol);
    const isArchived = async (who: Person) => (await stateOf(who, chat.id))?.archived;
    await archive(alice, chat.id);
    const messages = [
      {
        sender: bob.username,
        content: "past",
        created_at: "2024-05-01T09:30:00.000Z",
        client_msg_id: "1",
      },
    ];
    await new Backend(server.url).call("importMessages", { chat_id: chat.id, messages });
    expect(await isArchived(alice)).toBe(true);
    await alice.call("blockUser", { username: bob.username });
    await say(bob, chat, "blocked");
    expect(await isArchived(alice)).toBe(true);
    await alice.call("unblockUser", { username: bob.username });
    await alice.call("setChatState", { chat_id: chat.id, muted_until: inAnHour() });
    await archive(carol, chat.id, { notify: "none" });
    await say(bob, chat, "muted");
    await say(alice, chat, "mine");
    expect([await isArchived(alice), await isArchived(carol)]).toEqual([true, true]);
    await server.moveClock(HOUR_MS + 1000);
    await say(bob, chat, "heard");
    expect([await isArchived(alice), await isArchived(carol)]).toEqual([false, true]);
  });
});

describe("markUnread", () => {
  async function read() {
    const chat = await groupOf(alice, bob, carol);
    const contents = ["one", `two @${bob.username}`, "three"];
    const messages: Message[] = [];
    for (const content of contents) messages.push(await say(alice, chat, content));
    await bob.call("readChat", { chat_id: chat.id, seq: 3 });
    return { chat_id: chat.id, chat, messages };
  }

  test("makes messages unread for the caller alone, and tells only their clients", async () => {
    const { chat_id } = await read();
    const before = await ownSeq(bob);
    await using own = await bob.connect();
    await using other = await alice.connect();
    expect(await bob.call("markUnread", { chat_id, seq: 1 })).toEqual({ unread_count: 2 });
    expect(await get(bob, chat_id)).toMatchObject({
      unread_count: 2,
      unread: { human: 2, agent: 0, mentions: 1 },
      last_read_seq: 1,
      own_seq: before + 1,
      reads: { [bob.username]: 3 },
    });
    expect((await get(alice, chat_id)).reads[bob.username]).toBe(3);
    const isHere = (each: { conversation_id: string }) => each.conversation_id === chat_id;
    const told = await own.settledEvents("events.chatStateUpdated", isHere);
    expect(told.map(({ params, own_seq }) => [params.last_read_seq, own_seq])).toEqual([
      [1, before + 1],
    ]);
    for (const socket of [own, other]) {
      expect(await socket.settledEvents("events.chatRead", isHere)).toEqual([]);
    }
    expect(await other.settledEvents("events.chatStateUpdated", isHere)).toEqual([]);
    expect((await since(bob, before)).states).toMatchObject([{ last_read_seq: 1 }]);
  });

  test("does nothing at or above the position", async () => {
    const { chat_id } = await read();
    const before = await ownSeq(bob);
    expect(await bob.call("markUnread", { chat_id, seq: 3 })).toEqual({ unread_count: 0 });
    expect(await bob.call("markUnread", { chat_id, seq: 99 })).toEqual({ unread_count: 0 });
    expect(await ownSeq(bob)).toBe(before);
    expect(await outcome(bob.call("markUnread", { chat_id, seq: -1 }))).toBe("bad_request");
  });

  test("what is read after it is told to others only beyond what they know", async () => {
    const { chat_id, chat } = await read();
    await bob.call("markUnread", { chat_id, seq: 0 });
    await say(alice, chat, "four");
    await using own = await bob.connect();
    await using other = await alice.connect();
    expect(await bob.call("readChat", { chat_id, seq: 2 })).toEqual({ unread_count: 2 });
    expect(await bob.call("readChat", { chat_id, seq: 4 })).toEqual({ unread_count: 0 });
    const isHere = (each: { conversation_id: string }) => each.conversation_id === chat_id;
    const positions = (frames: EventFrame<"events.chatRead" | "events.chatStateUpdated">[]) =>
      frames.map(({ params }) => params.last_read_seq);
    expect(positions(await own.settledEvents("events.chatStateUpdated", isHere))).toEqual([2, 4]);
    expect(positions(await other.settledEvents("events.chatRead", isHere))).toEqual([4]);
    expect((await get(alice, chat_id)).reads[bob.username]).toBe(4);
  });

  test("a message of one's own reads up to it", async () => {
    const { chat_id, chat } = await read();
    await bob.call("markUnread", { chat_id, seq: 0 });
    await say(bob, chat, "mine");
    const seen = await get(bob, chat_id);
    expect(seen).toMatchObject({ unread_count: 0, last_read_seq: 4, reads: { [bob.username]: 4 } });
  });
});

describe("clearChat", () => {
  async function cleared() {
    const chat = await groupOf(alice, bob);
    const chat_id = chat.id;
    const word = `cleared${Bun.randomUUIDv7().slice(-8)}`;
    const { id: file } = await upload(alice, chat_id, "notes.txt", "notes");
    const old = await alice.call("sendMessage", {
      chat_id,
      content: `${word} @${bob.username}`,
      file_ids: [file],
    });
    await alice.call("setChatTitle", { chat_id, title: "Renamed" });
    const before = await get(bob, chat_id);
    return { chat, chat_id, word, file, old, before };
  }

  test("leaves nothing so far, for the caller alone", async () => {
    const { chat_id, word, file, old, before } = await cleared();
    const own = await ownSeq(bob);
    await bob.call("clearChat", { chat_id });
    expect(await get(bob, chat_id)).toMatchObject({
      cleared_seq: before.seq,
      last_read_seq: before.seq,
      last_message: null,
      unread_count: 0,
      unread: { human: 0, agent: 0, mentions: 0 },
      seq: before.seq,
      own_seq: own + 1,
    });
    expect(await bob.call("getChatHistory", { chat_id })).toEqual({
      items: [],
      has_more: false,
      changes: [],
    });
    const message_id = old.id;
    const gone = [
      bob.call("getMessage", { message_id }),
      bob.call("addReaction", { message_id, emoji: "👍" }),
      bob.call("getMessageReactions", { message_id }),
      bob.call("reportMessage", { message_id, reason: "spam" }),
      bob.call("sendMessage", { chat_id, content: "re", reply_to_id: message_id }),
    ];
    expect(new Set(await Promise.all(gone.map(outcome)))).toEqual(new Set(["not_found"]));
    expect(await found(bob, word)).toEqual([]);
    expect((await bob.call("getFileLinks", { file_ids: [file] })).items).toEqual([]);
    expect((await bob.call("getChatFiles", { chat_id })).items).toEqual([]);
    const page = await bob.call("getUpdates", { chat_id, since_seq: 0 });
    expect(page).toMatchObject({ messages: [], deleted_ids: [], changes: [] });

    expect(await historyOf(alice, chat_id)).toEqual([old.content]);
    expect(await found(alice, word)).toHaveLength(1);
    expect((await alice.call("getFileLinks", { file_ids: [file] })).items).toHaveLength(1);
    // Others are not told that it was read.
    expect((await get(alice, chat_id)).reads[bob.username]).toBe(0);
  });

  test("tells the caller's own clients, and those that were away", async () => {
    const { chat_id, before } = await cleared();
    await using own = await bob.connect();
    await using other = await alice.connect();
    const own_since = await ownSeq(bob);
    await bob.call("clearChat", { chat_id });
    await bob.call("clearChat", { chat_id });
    const params = { conversation_id: chat_id, cleared_seq: before.seq, erased: false };
    const told = { method: "events.chatCleared", params, own_seq: own_since + 1 } as const;
    const isHere = (each: { conversation_id: string }) => each.conversation_id === chat_id;
    expect(await own.settledEvents("events.chatCleared", isHere)).toEqual([told]);
    expect(await other.settledEvents("events.chatCleared", isHere)).toEqual([]);
    expect(await other.settledEvents("events.chatRead", isHere)).toEqual([]);
    const { states, gone } = await since(bob, own_since, { [chat_id]: before.seq });
    expect(states).toMatchObject([{ conversation_id: chat_id, cleared_seq: before.seq }]);
    expect(gone).toEqual([]);
  });

  test("leaves the lists until something new comes, and changes of what is gone are nothing new", async () => {
    const { chat, chat_id, old } = await cleared();
    const isListed = async () => (await listOf(bob)).includes(chat_id);
    const isNew = async () =>
      (await since(bob, 0, {})).new.some(({ conversation_id }) => conversation_id === chat_id);
    await bob.call("clearChat", { chat_id });
    expect([await isListed(), await isNew()]).toEqual([false, false]);
    await alice.call("addReaction", { message_id: old.id, emoji: "👍" });
    await alice.call("editMessage", { message_id: old.id, content: "edited" });
    expect([await isListed(), await isNew()]).toEqual([false, false]);
    const { seq } = await get(bob, chat_id);
    expect(await bob.call("getUpdates", { chat_id, since_seq: seq - 2 })).toMatchObject({
      messages: [],
      deleted_ids: [],
      seq,
    });
    await alice.call("deleteMessages", { chat_id, message_ids: [old.id] });
    const next = await say(alice, chat, "new");
    expect([await isListed(), await isNew()]).toEqual([true, true]);
    expect(await historyOf(bob, chat_id)).toEqual(["new"]);
    expect((await get(bob, chat_id)).unread_count).toBe(1);
    expect(await bob.call("markUnread", { chat_id, seq: 0 })).toEqual({ unread_count: 1 });
    expect((await get(bob, chat_id)).last_read_seq).toBeLessThan(next.seq);
    await bob.call("readChat", { chat_id, seq: next.seq });
    expect(await bob.call("markUnread", { chat_id, seq: 0 })).toEqual({ unread_count: 1 });
  });

  test("is what an agent knows when its owner asks, and not when others do", async () => {
    const { agent, chat: own } = await externalAgent(alice);
    const chat = await alice.call("startChat", {
      usernames: [bob.username, agent.username],
      kind: "group",
    });
    const contextOf = async (who: Person, content: string) => {
      await say(who, chat, `@${agent.username} ${content}`);
      const turn = await claim(agent);
      await complete(agent, turn, "answered");
      return turn.context.map((message) => message.content);
    };
    await say(alice, chat, "secret");
    await alice.call("clearChat", { chat_id: chat.id });
    expect(await contextOf(bob, "one")).toContain("secret");
    const asked = await contextOf(alice, "two");
    expect(asked).not.toContain("secret");
    expect(asked.at(-1)).toBe(`@${agent.username} two`);
    expect(own.id).not.toBe(chat.id);
  });
});

describe("clearChat with erase", () => {
  test("refuses while another person takes part", async () => {
    const { id: chat_id } = await groupOf(alice, bob);
    expect(await outcome(alice.call("clearChat", { chat_id, erase: true }))).toBe("conflict");
    await bob.call("leaveChat", { chat_id });
    await alice.call("clearChat", { chat_id, erase: true });
    expect(await outcome(get(alice, chat_id))).toBe("not_found");
  });

  test("erases a conversation with an agent for everybody", async () => {
    const { agent, chat } = await externalAgent(alice);
    const chat_id = chat.id;
    const word = `erased${Bun.randomUUIDv7().slice(-8)}`;
    const { id: file } = await upload(alice, chat_id, "notes.txt", "notes");
    const message = await alice.call("sendMessage", { chat_id, content: word, file_ids: [file] });
    const own_since = await ownSeq(alice);
    await using own = await alice.connect();
    const { seq } = await get(alice, chat_id);
    await alice.call("clearChat", { chat_id, erase: true });
    const { params, own_seq } = await own.event("events.chatCleared");
    expect(params).toMatchObject({ conversation_id: chat_id, erased: true });
    expect(own_seq).toBe(own_since + 1);
    const calls = [
      get(alice, chat_id),
      get(agent, chat_id),
      alice.call("getChatHistory", { chat_id }),
      alice.call("getMessage", { message_id: message.id }),
      agent.call("getMessage", { message_id: message.id }),
      alice.call("sendMessage", { chat_id, content: "hello" }),
      alice.call("clearChat", { chat_id, erase: true }),
      alice.call("leaveChat", { chat_id, final: true }),
    ];
    const outcomes = await Promise.all(calls.map(outcome));
    expect(new Set(outcomes)).toEqual(new Set(["not_found"]));
    // The file is deleted soon after.
    const links = await alice.call("getFileLinks", { file_ids: [file] }).catch(() => null);
    expect(links?.items ?? []).toEqual([]);
    expect(await found(alice, word)).toEqual([]);
    const known = { [chat_id]: seq };
    expect((await since(alice, own_since, known)).gone).toEqual([chat_id]);
    expect((await since(agent, 0, known)).gone).toEqual([chat_id]);
    expect(await listOf(alice)).not.toContain(chat_id);
    // The next conversation with the agent is another one.
    const next = await alice.call("startChat", { usernames: [agent.username] });
    expect(next.id).not.toBe(chat_id);
    expect(await historyOf(alice, next.id)).toEqual([]);
  });

  test("ends waiting and running turns and hooks, and keeps what a report has", async () => {
    await alice.call("setAgentKey", { provider: "claude", api_key: "sandbox-0123456789" });
    const chat = await groupOf(alice, bob);
    const chat_id = chat.id;
    const spam = await say(bob, chat, "spam");
    await alice.call("reportMessage", { message_id: spam.id, reason: "spam" });
    await bob.call("leaveChat", { chat_id });
    await alice.call("addGroupAgent", { chat_id, agent_username: agentOf(alice) });
    const { url } = await alice.call("createIncomingHook", { chat_id, name: "news" });
    await say(alice, chat, `@${agentOf(alice)} hello`);
    await alice.call("clearChat", { chat_id, erase: true });
    const posted = await fetch(url, { method: "POST", body: JSON.stringify({ text: "news" }) });
    expect(posted.status).toBe(404);
    const { items } = await new Backend(server.url).call("getReports", {});
    expect(items.find(({ message }) => message.id === spam.id)?.message.content).toBe("spam");
    expect(await outcome(alice.call("stopChatAgents", { chat_id }))).toBe("not_found");
  });
});

describe("getUnread", () => {
  test("adds up what a badge shows", async () => {
    const [dan, eve] = await people(server.url, "dan", "eve");
    const nothing = { conversations: 0, messages: 0, mentions: 0, threads: 0 };
    expect(await dan.call("getUnread")).toEqual(nothing);
    const [one, two, three] = [
      await groupOf(dan, eve),
      await groupOf(dan, eve),
      await groupOf(dan, eve),
    ];
    for (const chat of [one, two, three]) await say(eve, chat, "hello");
    for (const chat of [two, three]) await say(eve, chat, `@${dan.username}`);
    expect(await dan.call("getUnread")).toEqual({
      conversations: 3,
      messages: 5,
      mentions: 2,
      threads: 0,
    });
    await dan.call("setChatState", { chat_id: one.id, notify: "none" });
    await dan.call("setChatState", { chat_id: two.id, muted_until: inAnHour() });
    await dan.call("setChatState", { chat_id: three.id, muted_until: null, notify: "mentions" });
    expect(await dan.call("getUnread")).toEqual({
      conversations: 2,
      messages: 2,
      mentions: 2,
      threads: 0,
    });
    await archive(dan, three.id);
    await dan.call("clearChat", { chat_id: two.id });
    expect(await dan.call("getUnread")).toEqual({
      conversations: 1,
      messages: 2,
      mentions: 1,
      threads: 0,
    });
  });
});
