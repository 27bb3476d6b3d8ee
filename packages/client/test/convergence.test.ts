import { afterAll, beforeAll, expect, test } from "bun:test";
import { liftLimits, type Person, people } from "@parley/testkit/client.ts";
import { FaultyLine } from "@parley/testkit/proxy.ts";
import { noRates, startServer, type TestServer } from "@parley/testkit/server.ts";
import fc from "fast-check";
import type { Client } from "../src/index.ts";
import { clientOf, connected, memoryStorage, online, type TestClient } from "./support/clients.ts";
import { LateReplies } from "./support/late-replies.ts";
import { equalsServer, loadAll, tellable, viewOf } from "./support/view.ts";

const RUNS = 20;

let server: TestServer;
let crowd: readonly Person[];
/** With more messages than one page has, and some of them from further back. */
let longChat: string;
let early: string[];
beforeAll(async () => {
  server = await startServer(noRates);
  crowd = await people(server.url, "ann", "bob", "cat");
  await crowd[0]?.call("setAgentKey", { provider: "claude", api_key: "sandbox-1234567890" });
  if (crowd[0]) await liftLimits(crowd[0]);
  longChat = await startChat("Long", 240);
  const history = { chat_id: longChat, limit: 100 };
  const { items = [] } = (await crowd[0]?.call("getChatHistory", history)) ?? {};
  const before = { ...history, before: items[0]?.id ?? "" };
  early = (await crowd[0]?.call("getChatHistory", before))?.items.map(({ id }) => id) ?? [];
});
afterAll(() => server[Symbol.asyncDispose]());

/** Somebody's client, behind a line of its own. */
interface Seat extends AsyncDisposable {
  person: Person;
  client: TestClient;
  proxy: FaultyLine;
  replies: LateReplies;
  /** Ends the client, and begins another one with what the first has kept. */
  restart(): void;
}

async function seat(person: Person): Promise<Seat> {
  const proxy = await FaultyLine.to(server.url);
  const storage = memoryStorage();
  const replies = new LateReplies();
  const { WebSocket } = replies;
  const begin = () => clientOf(person, proxy.url, { timeoutMs: 3000, storage, WebSocket });
  let client = begin();
  return {
    person,
    get client() {
      return client;
    },
    proxy,
    replies,
    restart() {
      client.close();
      client = begin();
      client.connect().catch(asExpected);
    },
    async [Symbol.asyncDispose]() {
      client.close();
      await proxy[Symbol.asyncDispose]();
    },
  };
}

interface Step {
  kind: string;
  seat: number;
  other: number;
  pick: number;
  text: string;
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom(
    ...["send", "send", "send", "mention", "reply", "edit", "delete", "hide", "react", "react"],
    ...["read", "title", "add", "remove", "leave", "name", "open", "older", "typing"],
    ...["around", "around", "aside", "aside", "closeAside"],
    ...["away", "awayEdit", "awayRead", "awayHide", "awayReact", "awayDelete"],
    ...["ask", "ask", "brake", "press", "mode"],
    ...["cut", "cut", "cutLater", "cutLater", "refuse", "allow", "delay", "breathe", "breathe"],
    ...["late", "late", "awayName", "awayName", "agentName"],
    ...["restart", "restart"],
  ),
  seat: fc.nat(3),
  other: fc.nat(2),
  pick: fc.nat(1000),
  text: fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 }).map((text) => `m ${text}`),
});

const EMOJIS = ["👍", "🎉", "❤️"] as const;

function perform(chats: string[], seats: Seat[], step: Step): unknown {
  const { kind, pick, text } = step;
  const chat_id = chats[pick % chats.length] ?? "";
  const { client, proxy, replies, person, restart } = seats[step.seat] as Seat;
  const { model } = client;
  const username = (crowd[step.other] as Person).username;
  const { items } = model.get(pick % 3 === 0 ? `aside:${chat_id}` : `messages:${chat_id}`) ?? {
    items: [],
  };
  const target = items[pick % Math.max(items.length, 1)];
  const message_id = target?.id ?? Bun.randomUUIDv7();
  const ids = items.slice(pick % 5, (pick % 5) + 2).map(({ id }) => id);
  const message_ids = ids.length > 0 ? ids : [message_id];
  const emoji = EMOJIS[pick % 3] ?? "👍";
  const steps: Record<string, () => unknown> = {
    send: () => model.send(chat_id, text),
    mention: () => model.send(chat_id, `${text} @${username}`),
    reply: () => model.send(chat_id, text, { replyTo: message_id }),
    edit: () => model.edit(message_id, `${text} @${username}`),
    delete: () => model.remove(chat_id, message_ids, "everyone"),
    hide: () => model.remove(chat_id, message_ids, "me"),
    react: () => model.react(message_id, emoji),
    read: () => model.markRead(chat_id),
    ask: () => model.send(chat_id, `buy @${crowd[0]?.username}:claude`),
    brake: () => client.stopChatAgents({ chat_id }),
    press: () => {
      const component = items.findLast(({ content }) => content.includes("<button"));
      const action = /<button action="([^"]+)"/.exec(component?.content ?? "")?.[1] ?? "refresh";
      const id = component?.id ?? message_id;
      return client.sendComponentAction({ chat_id, message_id: id, action });
    },
    mode: async () => {
      const agent = { chat_id, agent_username: `${person.username}:gpt` };
      await client.addGroupAgent({ ...agent, always_on: true });
      await client.setGroupAgentMode({ ...agent, always_on: false });
    },
    title: () => client.setChatTitle({ chat_id, title: text }),
    add: () => client.addChatMembers({ chat_id, usernames: [username] }),
    remove: () => client.removeChatMember({ chat_id, username }),
    leave: () => chat_id !== longChat && client.leaveChat({ chat_id }),
    name: () => client.updateMe({ display_name: text }),
    open: () => model.openChat(chat_id),
    older: () => model.loadOlder(chat_id),
    around: () => model.showAround(longChat, early[pick % early.length] ?? ""),
    aside: () => model.loadAside(longChat, pick % 2 === 0 ? "older" : "newer"),
    closeAside: () => pick % 2 === 0 && model.closeAside(longChat),
    typing: () => model.typing(chat_id),
    away: () => person.call("sendMessage", { chat_id, content: `${text} @${username}` }),
    awayEdit: () => person.call("editMessage", { message_id, content: `${text} @${username}` }),
    awayRead: () => person.call("readChat", { chat_id, seq: pick % 40 }),
    awayHide: () => person.call("deleteMessagesForMe", { chat_id, message_ids }),
    awayReact: () => person.call("setMessageReaction", { message_id, emoji }),
    awayDelete: () => person.call("deleteMessages", { chat_id, message_ids }),
    awayName: () => person.call("updateMe", { display_name: text }),
    agentName: () => person.call("setAgentProfile", { provider: "claude", display_name: text }),
    restart,
    cut: () => proxy.cut(),
    cutLater: () => proxy.cutAfter(pick * 3, pick % 2 === 0 ? "toClient" : "toServer"),
    refuse: () => proxy.refuse(true),
    allow: () => proxy.refuse(false),
    delay: () => proxy.delay(() => pick % 4),
    late: () => replies.delay(() => (pick % 3) * Math.random() * 20),
    // Lets answers of the server come in before things go on.
    breathe: () => person.call("getMe"),
  };
  return steps[kind]?.();
}

/** Whatever the service refuses, or a cut line swallows, changes nothing that was not shown. */
const asExpected = (error: unknown): void => {
  const code = (error as { code?: string }).code ?? "";
  if (!["bad_request", "forbidden", "not_found", "unavailable"].includes(code)) throw error;
};

async function startChat(title: string, messages: number): Promise<string> {
  const [ann, bob, cat] = crowd as readonly [Person, Person, Person];
  const usernames = [bob.username, cat.username, `${ann.username}:claude`];
  const { id } = await ann.call("startChat", { usernames, title });
  for (let count = 0; count < messages; count++) {
    await bob.call("sendMessage", { chat_id: id, content: `before ${count}` });
  }
  return id;
}

/** Whoever was left in it by the last storm brings everybody back. */
async function gather(chat_id: string): Promise<void> {
  const usernames = crowd.map(({ username }) => username);
  for (const person of crowd) {
    await person.call("addChatMembers", { chat_id, usernames }).catch(asExpected);
  }
}

/** Agents fall silent, so that there is an end to compare. */
async function brake(chat_id: string): Promise<void> {
  for (const person of crowd) await person.call("stopChatAgents", { chat_id }).catch(asExpected);
}

async function storm(steps: Step[]): Promise<void> {
  const [ann, bob, cat] = crowd as readonly [Person, Person, Person];
  const chat = await startChat("Storm", 4);
  await gather(longChat);
  const seats = await Promise.all([ann, bob, cat, ann].map(seat));
  const acts: Promise<unknown>[] = [];
  try {
    for (const { client } of seats) await client.connect();
    for (const { client } of seats.slice(0, 3)) await client.model.openChat(chat);
    for (const each of steps) {
      const act = Promise.try(() => perform([chat, longChat], seats, each));
      acts.push(act.catch(asExpected));
      if (each.kind === "breathe") await act;
    }
    for (const { proxy, replies } of seats) {
      proxy.calm();
      replies.delay(() => 0);
    }
    await Promise.all(acts);
    for (const chat_id of [chat, longChat]) await brake(chat_id);
    for (const { client, person } of seats) await check(client, person);
  } finally {
    for (const each of seats) await each[Symbol.asyncDispose]();
    // Somebody stays in the long one.
    for (const person of crowd) {
      await person.call("leaveChat", { chat_id: chat }).catch(asExpected);
    }
  }
}

/** The model of a client that has been through it all, of a new one, and the server's answers are the same. */
async function check(client: Client, person: Person): Promise<void> {
  await online(client);
  await loadAll(client);
  await equalsServer(client, person);
  using fresh = await connected(person, server.url);
  await loadAll(fresh);
  await equalsServer(fresh, person);
  expect(tellable(viewOf(client))).toEqual(tellable(viewOf(fresh)));
}

test("after any storm of actions, cuts and delays every model equals a fresh fetch", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60, size: "max" }), (steps) =>
      storm(steps),
    ),
    // What happens depends on timing too: a run cannot be repeated, so it cannot be made smaller.
    { numRuns: RUNS, endOnFailure: true },
  );
});
