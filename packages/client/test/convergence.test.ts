import { beforeAll, test } from "bun:test";
import { liftLimits, type Person, people } from "@parley/testkit/client.ts";
import { FaultyProxy } from "@parley/testkit/proxy.ts";
import { rounds } from "@parley/testkit/rounds.ts";
import type { TestServer } from "@parley/testkit/server.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";
import fc from "fast-check";
import type { Client } from "../src/index.ts";
import {
  clientOf,
  connected,
  memoryBlobs,
  memoryStorage,
  online,
  type TestClient,
} from "./support/clients.ts";
import { picture, textFile } from "./support/files.ts";
import { LateReplies } from "./support/late-replies.ts";
import { equalsModel, equalsServer, loadAll } from "./support/view.ts";

const RUNS = rounds({ few: 7, all: 20 });

let server: TestServer;
let persons: readonly Person[];
/** A conversation with more messages than one page, and the ids of some older messages. */
let longChat: string;
let early: string[];
beforeAll(async () => {
  server = await sharedServer();
  persons = await people(server.url, "ann", "bob", "cat");
  await persons[0]?.call("setAgentKey", { provider: "claude", api_key: "sandbox-1234567890" });
  if (persons[0]) await liftLimits(persons[0]);
  longChat = await startChat("Long", 240);
  const history = { chat_id: longChat, limit: 100 };
  const { items = [] } = (await persons[0]?.call("getChatHistory", history)) ?? {};
  const before = { ...history, before: items[0]?.id ?? "" };
  early = (await persons[0]?.call("getChatHistory", before))?.items.map(({ id }) => id) ?? [];
});
/** A person's client behind a proxy of its own. */
interface Device extends AsyncDisposable {
  person: Person;
  client: TestClient;
  proxy: FaultyProxy;
  replies: LateReplies;
  /** Closes the client, and creates another with the same storage. */
  restart(): void;
}

async function createDevice(person: Person): Promise<Device> {
  const proxy = await FaultyProxy.to(server.url);
  const [storage, blobs] = [memoryStorage(), memoryBlobs()];
  const replies = new LateReplies();
  const { WebSocket } = replies;
  const begin = () => clientOf(person, proxy.url, { timeoutMs: 3000, storage, blobs, WebSocket });
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
      client.connect().catch(ignoreExpected);
    },
    async [Symbol.asyncDispose]() {
      client.close();
      await proxy[Symbol.asyncDispose]();
    },
  };
}

interface Step {
  kind: string;
  device: number;
  other: number;
  pick: number;
  text: string;
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom(
    ...[
      "send",
      "send",
      "send",
      "mention",
      "reply",
      "sendFiles",
      "sendFiles",
      "discard",
      "edit",
      "delete",
      "hide",
      "react",
      "react",
    ],
    ...["read", "title", "add", "remove", "leave", "name", "open", "older", "typing"],
    ...["around", "around", "aside", "aside", "closeAside"],
    ...["otherSend", "otherEdit", "otherRead", "otherHide", "otherReact", "otherDelete"],
    ...["block", "otherBlock", "unblock", "otherUnblock"],
    ...["view", "otherView", "clear", "otherClear", "unread", "otherUnread", "otherUnread"],
    ...["ask", "ask", "stopAgents", "press", "mode"],
    ...["cut", "cut", "cutLater", "cutLater", "refuse", "allow", "delay", "settle", "settle"],
    ...["late", "late", "otherName", "otherName", "agentName"],
    ...["restart", "restart"],
  ),
  device: fc.nat(3),
  other: fc.nat(2),
  pick: fc.nat(1000),
  text: fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 }).map((text) => `m ${text}`),
});

const EMOJIS = ["👍", "🎉", "❤️"] as const;

/** What a step acts on. */
function targetOf(chats: string[], devices: Device[], step: Step) {
  const { pick, text } = step;
  const chat_id = chats[pick % chats.length] ?? "";
  const device = devices[step.device] as Device;
  const { model } = device.client;
  const { username } = persons[step.other] as Person;
  const shown = model.get(pick % 3 === 0 ? `aside:${chat_id}` : `messages:${chat_id}`);
  const items = shown?.items ?? [];
  const message_id = items[pick % Math.max(items.length, 1)]?.id ?? Bun.randomUUIDv7();
  const ids = items.slice(pick % 5, (pick % 5) + 2).map(({ id }) => id);
  const message_ids = ids.length > 0 ? ids : [message_id];
  const emoji = EMOJIS[pick % 3] ?? "👍";
  return { ...device, model, pick, text, chat_id, username, items, message_id, message_ids, emoji };
}

/** What a step changes of the own view. */
const viewOf = (pick: number) =>
  pick % 3 === 0 ? { pinned: pick % 2 === 0 } : { archived: pick % 2 === 0 };

type Target = ReturnType<typeof targetOf>;
type Steps = Record<string, () => unknown>;

/** Up to three files, most of them texts. */
const filesOf = ({ pick, text }: Target): File[] =>
  Array.from({ length: 1 + (pick % 3) }, (_, index) =>
    (pick + index) % 4 === 0 ? picture() : textFile(text.repeat(1 + pick)),
  );

const modelSteps = (target: Target): Steps => {
  const { model, pick, text, chat_id, username, items, message_id, message_ids, emoji } = target;
  return {
    send: () => model.send(chat_id, text),
    mention: () => model.send(chat_id, `${text} @${username}`),
    reply: () => model.send(chat_id, text, { replyTo: message_id }),
    sendFiles: () => model.send(chat_id, pick % 2 === 0 ? "" : text, { files: filesOf(target) }),
    discard: () => {
      const unsent = items.findLast(({ delivery }) => delivery !== "sent");
      if (unsent) model.discard(unsent.id);
    },
    ask: () => model.send(chat_id, `buy @${persons[0]?.username}:claude`),
    edit: () => model.edit(message_id, `${text} @${username}`),
    delete: () => model.remove(chat_id, message_ids, "everyone"),
    hide: () => model.remove(chat_id, message_ids, "me"),
    react: () => model.react(message_id, emoji),
    read: () => model.markRead(chat_id),
    typing: () => model.typing(chat_id),
    open: () => model.openChat(chat_id),
    older: () => model.loadOlder(chat_id),
    around: () => model.showAround(longChat, early[pick % early.length] ?? ""),
    aside: () => model.loadAside(longChat, pick % 2 === 0 ? "older" : "newer"),
    view: () => model.setState(chat_id, viewOf(pick)),
    clear: () => chat_id !== longChat && model.clear(chat_id),
    unread: () => model.markUnread(chat_id, pick % 40),
    closeAside: () => pick % 2 === 0 && model.closeAside(longChat),
  };
};

const callSteps = ({
  client,
  person,
  text,
  chat_id,
  username,
  items,
  message_id,
}: Target): Steps => ({
  stopAgents: () => client.stopChatAgents({ chat_id }),
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
  block: () => client.blockUser({ username }),
  unblock: () => client.unblockUser({ username }),
});

/** What the same person does on another device. */
const otherDeviceSteps = (target: Target): Steps => {
  const { person, pick, text, chat_id, username, message_id, message_ids, emoji } = target;
  const content = `${text} @${username}`;
  return {
    otherSend: () => person.call("sendMessage", { chat_id, content }),
    otherEdit: () => person.call("editMessage", { message_id, content }),
    otherRead: () => person.call("readChat", { chat_id, seq: pick % 40 }),
    otherView: () => person.call("setChatState", { chat_id, ...viewOf(pick) }),
    otherClear: () => chat_id !== longChat && person.call("clearChat", { chat_id }),
    otherUnread: () => person.call("markUnread", { chat_id, seq: pick % 40 }),
    otherHide: () => person.call("deleteMessagesForMe", { chat_id, message_ids }),
    otherReact: () => person.call("setMessageReaction", { message_id, emoji }),
    otherDelete: () => person.call("deleteMessages", { chat_id, message_ids }),
    otherBlock: () => person.call("blockUser", { username }),
    otherUnblock: () => person.call("unblockUser", { username }),
    otherName: () => person.call("updateMe", { display_name: text }),
    agentName: () => person.call("setAgentProfile", { provider: "claude", display_name: text }),
    // Lets replies arrive before the next step.
    settle: () => person.call("getMe"),
  };
};

const faultSteps = ({ proxy, replies, restart, pick }: Target): Steps => ({
  restart,
  cut: () => proxy.cut(),
  cutLater: () => proxy.cutAfter(pick * 3, pick % 2 === 0 ? "toClient" : "toServer"),
  refuse: () => proxy.refuse(true),
  allow: () => proxy.refuse(false),
  delay: () => proxy.delay(() => pick % 4),
  late: () => replies.delay(() => (pick % 3) * Math.random() * 20),
});

function perform(chats: string[], devices: Device[], step: Step): unknown {
  const target = targetOf(chats, devices, step);
  const steps: Steps = {
    ...modelSteps(target),
    ...callSteps(target),
    ...otherDeviceSteps(target),
    ...faultSteps(target),
  };
  const run = steps[step.kind];
  if (!run) throw new Error(`there is no step ${step.kind}`);
  return run();
}

/** Calls may be refused by the service or fail because the connection was cut. */
const ignoreExpected = (error: unknown): void => {
  const code = (error as { code?: string }).code ?? "";
  if (!["bad_request", "forbidden", "not_found", "unavailable"].includes(code)) throw error;
};

async function startChat(title: string, messages: number): Promise<string> {
  const [ann, bob, cat] = persons as readonly [Person, Person, Person];
  const usernames = [bob.username, cat.username, `${ann.username}:claude`];
  const { id } = await ann.call("startChat", { usernames, title });
  for (let count = 0; count < messages; count++) {
    await bob.call("sendMessage", { chat_id: id, content: `before ${count}` });
  }
  return id;
}

async function unblockEverybody(): Promise<void> {
  for (const person of persons) {
    for (const { username } of persons) {
      await person.call("unblockUser", { username }).catch(ignoreExpected);
    }
  }
}

/** Adds everybody again: whoever is still in the conversation can do so. */
async function addEverybody(chat_id: string): Promise<void> {
  const usernames = persons.map(({ username }) => username);
  for (const person of persons) {
    await person.call("addChatMembers", { chat_id, usernames }).catch(ignoreExpected);
  }
}

/** Stops all agents, so that there is a final state to compare. */
async function stopAgents(chat_id: string): Promise<void> {
  for (const person of persons)
    await person.call("stopChatAgents", { chat_id }).catch(ignoreExpected);
}

async function run(steps: Step[]): Promise<void> {
  const [ann, bob, cat] = persons as readonly [Person, Person, Person];
  await unblockEverybody();
  const chat = await startChat("Random", 4);
  await addEverybody(longChat);
  const devices = await Promise.all([ann, bob, cat, ann].map(createDevice));
  const acts: Promise<unknown>[] = [];
  try {
    for (const { client } of devices) await client.connect();
    for (const { client } of devices.slice(0, 3)) await client.model.openChat(chat);
    for (const each of steps) {
      const act = Promise.try(() => perform([chat, longChat], devices, each));
      acts.push(act.catch(ignoreExpected));
      if (each.kind === "settle") await act;
    }
    for (const { proxy, replies } of devices) {
      proxy.reset();
      replies.delay(() => 0);
    }
    await Promise.all(acts);
    for (const chat_id of [chat, longChat]) await stopAgents(chat_id);
    for (const { client, person } of devices) await check(client, person);
  } finally {
    for (const each of devices) await each[Symbol.asyncDispose]();
    // Everybody stays in the long conversation, which later runs use.
    for (const person of persons) {
      await person.call("leaveChat", { chat_id: chat }).catch(ignoreExpected);
    }
  }
}

/** Compares the client's model, the model of a new client, and the server's replies. */
async function check(client: Client, person: Person): Promise<void> {
  await online(client);
  await loadAll(client);
  await equalsServer(client, person);
  using fresh = await connected(person, server.url);
  await loadAll(fresh);
  await equalsServer(fresh, person);
  await equalsModel(client, fresh);
}

test("after random actions, cuts and delays every model equals a fresh fetch", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 60, size: "max" }), (steps) =>
      run(steps),
    ),
    // Runs depend on timing, so that a failing one cannot be repeated and shrunk.
    { numRuns: RUNS, endOnFailure: true },
  );
});
