import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { type Operation, type OperationName, operations } from "@parley/protocol";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import {
  type Answer,
  agentOf,
  liftLimits,
  Person,
  post,
  say,
  signUp,
} from "@parley/testkit/client.ts";
import { claim, externalAgent } from "@parley/testkit/external-agents.ts";
import { uploadPicture } from "@parley/testkit/files.ts";
import { stripedPng } from "@parley/testkit/pictures.ts";
import { limits, noRates, startServer } from "@parley/testkit/server.ts";
import { ToolServer, tool } from "@parley/testkit/tool-server.ts";
import { until } from "@parley/testkit/until.ts";
import { hugePng } from "../packages/server/test/support/pictures.ts";
import { type Sending, sendingsOf, tools } from "./sendings.ts";

/**
 * Every operation with the worst input that its contract allows, and what else strangers can send, against
 * a server with much data. A call may take so many times the CPU time of plain calls as it costs, times a
 * factor that leaves room for a busy machine. An operation without a row fails, and does not compile.
 */

const BACKLOG_BYTES = 4_194_304;
/** CPU time of a call, compared with that of a plain call times its cost. */
const FACTOR = 6;
/** Whatever a call costs, it may take as long as this many plain calls: writes are synced, for example. */
const FREE_PLAIN_CALLS = 60;
/** The CPU time of a process is counted in steps of 10 ms: calls are repeated until they took some. */
const STEP_MS = 10;
const MEASURED_MS = 40;
const MAX_REPEATS = 12;

const server = await startServer({
  // What is charged counts, and nobody runs out.
  ...limits({
    ...JSON.parse(`${noRates.PARLEY_LIMITS}`),
    cost_per_second: 1_000_000,
    cost_burst: 10_000_000,
  }),
  ...serviceKeySetting(),
  PARLEY_PRIVATE_ADDRESSES: "allow",
});
afterAll(() => server[Symbol.asyncDispose]());

const NOBODY = Bun.randomUUIDv7();
/** As long as a message may be; as JSON it is longer, and a search finds it. */
const LONGEST = '"word '.repeat(5461);
const service = new Backend(server.url);

async function createUsers(from: number): Promise<string[]> {
  const users = Array.from({ length: 499 }, (_, n) => ({ external_id: `user ${from + n}` }));
  const { items } = await service.call("upsertUsers", { users });
  return items.map(({ account }) => account.username);
}

const alice = await signUp(server.url, "alice");
const usernames = [...(await createUsers(0)), ...(await createUsers(499))];
// With room for agents.
const others = usernames.toSpliced(900, 8);
const crowd = await alice.call("startChat", { usernames: others, kind: "group" });
const long = await alice.call("startChat", { usernames: [], kind: "group" });
const sent = await Promise.all(Array.from({ length: 100 }, () => say(alice, long, LONGEST)));
const messageIds = sent.map(({ id }) => id);
for (let n = 0; n < 40; n++) {
  const chat = await alice.call("startChat", { usernames: usernames.slice(0, 60), kind: "group" });
  await say(alice, chat, LONGEST);
}
const inCrowd = await say(alice, crowd, "hello");
const reported = await say(await member(usernames[0] as string), crowd, "spam");
const { agent, chat: agentChat } = await externalAgent(alice);

for (const agent_username of [agent.username, agentOf(alice)]) {
  await alice.call("addGroupAgent", { chat_id: crowd.id, agent_username });
}
const form = await say(alice, crowd, '```form\n{"id":"f","fields":[]}\n```');

/** One of the people whom the service created. */
async function member(username: string): Promise<Person> {
  const { access_token, account } = await service.call("issueToken", { username });
  return new Person(server.url, access_token, account);
}

let created = 0;
/** A person who is in no conversation. */
async function newcomer(): Promise<Person> {
  const external_id = `newcomer ${++created}`;
  const { items } = await service.call("upsertUsers", { users: [{ external_id }] });
  return member(items[0]?.account.username as string);
}

let picture = "";
/** Alice, with an upload that is no picture of anything yet. */
async function withPicture(): Promise<Person> {
  picture = (await uploadPicture(alice)).id;
  return alice;
}

let turn = 0;
/** An external agent that has claimed a turn in the crowd. */
async function withTurn(): Promise<Person> {
  // One at a time in a conversation.
  if (turn > 0)
    await post(server.url, "finishTurn", { turn_id: turn, status: "failed" }, agent.token);
  await say(alice, crowd, `@${agent.username} hello`);
  turn = (await claim(agent)).turn_id;
  return agent;
}

const toolServer = new ToolServer();
afterAll(() => toolServer[Symbol.asyncDispose]());
toolServer.tools = Array.from({ length: 60 }, (_, n) => tool(`t${n}`, "\u6f22".repeat(4000)));

/** A person with as many tool servers as they may have, with long descriptions. */
const withToolServers = once(async () => {
  const person = await signUp(server.url, "collector");
  for (let n = 0; n < 20; n++) {
    await person.call("addToolServer", { name: `server ${n}`, url: toolServer.url });
  }
  return person;
});

/** A person about whose agent's calls nobody has decided, with long arguments. */
const withPendingCalls = once(async () => {
  const person = await signUp(server.url, "undecided");
  const agent_username = agentOf(person);
  await person.call("setAgentKey", { provider: "claude", api_key: "sandbox-0123456789" });
  await liftLimits(person);
  const { id: server_id } = await person.call("addToolServer", {
    name: "srv",
    url: toolServer.url,
  });
  const grant = { server_id, tool: "t0", policy: "ask" } as const;
  await person.call("setAgentTools", { agent_username, grants: [grant] });
  const content = `/tool srv__t0 {"a":"${"\u6f22".repeat(10_000)}"}`;
  for (let chats = 0; chats < 8; chats++) {
    const chat = await person.call("startChat", {
      usernames: [agent_username],
      kind: "direct",
      new: true,
    });
    for (let n = 0; n < 10; n++) await say(person, chat, content);
  }
  await until(async () => {
    const { items, has_more } = await person.call("getPendingToolCalls");
    return items.length === 80 || has_more;
  }, "the calls wait");
  return person;
});

/** What is prepared by the first of its rows. */
function once(prepare: () => Promise<Person>): () => Promise<Person> {
  let prepared: Promise<Person> | undefined;
  return () => {
    prepared ??= prepare();
    return prepared;
  };
}

let resetToken = "";
/** A person with a reset link, whose token is stored. */
async function forgetful(): Promise<Person> {
  const person = await signUp(server.url, "forgetful");
  const { url } = await service.call("createPasswordReset", { username: person.username });
  resetToken = new URL(url).hash.slice(1);
  return person;
}

interface Row {
  /** Made anew for each call, before it is measured. */
  input?: (n: number) => unknown;
  by?: () => Person | Backend | null | Promise<Person | Backend>;
  /** The least that is charged for what the call announces and mentions, beside its declaration. */
  charged?: number;
  /** How often the call is made at most, for those that `by` prepares. */
  most?: number;
  /** The worst call that is not refused at once may still fail. */
  code?: string;
  /** Limited by a rate of its own: hashes of passwords, requests to others, calls of the operator. */
  ownRate?: true;
}

/** Participants of `crowd`, once some have left, divided by those that cost as much as a plain call. */
const FAN_OUT = 18;
/** The number of a call that is made once, to see what is charged for it. */
const SINGLE = 500;
const handles = Array.from({ length: 6000 }, (_, n) => `@x${n.toString(36)}`).join(" ");
const mentions = `${usernames.map((name) => `@${name}`).join(" ")} ${handles}`.slice(0, 32_768);
const known = Object.fromEntries(Array.from({ length: 5000 }, () => [Bun.randomUUIDv7(), 1]));
const uuids = Array.from({ length: 100 }, () => Bun.randomUUIDv7());
const text = (length: number) => "é".repeat(length);
const ofMessage = { input: () => ({ message_id: messageIds[0] }) };
const inChat = { input: () => ({ chat_id: crowd.id }) };
const missing = { code: "not_found" } as const;
const asService = { by: () => service, ownRate: true } as const;
const asAgent = { by: () => agent } as const;
const page = { limit: 100 };

const rows: Record<OperationName, Row | readonly Row[]> = {
  signUp: {
    by: () => null,
    ownRate: true,
    input: (n) => ({ username: `new_${n}`, password: text(1024) }),
  },
  signIn: {
    by: () => null,
    ownRate: true,
    code: "unauthorized",
    input: (n) => ({ username: `nobody_${n}`, password: text(1024) }),
  },
  getSignInMethods: { by: () => null },
  startOidcSignIn: { by: () => null, code: "not_found" },
  finishOidcSignIn: {
    by: () => null,
    code: "not_found",
    input: () => ({ flow: "f".repeat(2048), state: "s".repeat(512), code: "c".repeat(4096) }),
  },
  changePassword: {
    ownRate: true,
    code: "forbidden",
    input: () => ({ current_password: text(1024), new_password: "x7".repeat(512) }),
  },
  createPasswordReset: { ...asService, ...missing, input: () => ({ username: "nobody_there" }) },
  getPasswordReset: { by: forgetful, input: () => ({ token: resetToken }) },
  resetPassword: {
    by: forgetful,
    ownRate: true,
    input: () => ({ token: resetToken, new_password: "x7é".repeat(341) }),
  },
  confirmPassword: {
    ownRate: true,
    code: "forbidden",
    input: () => ({ password: text(1024) }),
  },
  signOut: { by: newcomer },
  getSessions: {},
  revokeSession: { ...missing, input: () => ({ session_id: NOBODY }) },
  getSecondFactor: {},
  beginSecondFactor: { ownRate: true, code: "forbidden", input: () => ({ password: text(1024) }) },
  confirmSecondFactor: { code: "not_found", input: () => ({ code: "000000" }) },
  renewRecoveryCodes: {
    ownRate: true,
    code: "not_found",
    input: () => ({ password: text(1024), code: "000000" }),
  },
  removeSecondFactor: {
    ownRate: true,
    code: "not_found",
    input: () => ({ password: text(1024), code: "000000" }),
  },
  getMe: {},
  getUser: { input: () => ({ username: usernames[0] }) },
  getUsers: [
    { input: () => ({ usernames: usernames.slice(0, 1000), ...page }) },
    { input: () => ({ query: "u", ...page }) },
  ],
  getProfiles: { input: () => ({ usernames: usernames.slice(0, 100) }) },
  updateMe: { charged: FAN_OUT, input: (n) => ({ display_name: `${n} ${"e\u0301".repeat(30)}` }) },
  setAvatar: { charged: FAN_OUT, most: 2, by: withPicture, input: () => ({ file_id: picture }) },
  exportMe: {},
  deleteMe: { by: newcomer, code: "bad_request" },
  blockUser: { by: newcomer, input: (n) => ({ username: usernames[n], leave_groups: true }) },
  unblockUser: { input: () => ({ username: usernames[0] }) },
  getBlocked: { input: () => page },
  startChat: { input: () => ({ usernames, title: text(128) }) },
  getChats: { input: () => page },
  getChat: inChat,
  setChatTitle: {
    charged: FAN_OUT,
    input: (n) => ({ chat_id: crowd.id, title: `${n}${text(120)}` }),
  },
  setChatPicture: {
    charged: FAN_OUT,
    most: 2,
    by: withPicture,
    input: () => ({ chat_id: crowd.id, file_id: picture }),
  },
  addChatMembers: { input: () => ({ chat_id: crowd.id, usernames: others }) },
  removeChatMember: {
    charged: FAN_OUT,
    input: (n) => ({ chat_id: crowd.id, username: usernames.at(-1 - n) }),
  },
  leaveChat: {
    charged: FAN_OUT,
    most: 4,
    by: () => member(usernames[100 + ++created] as string),
    input: () => ({ chat_id: crowd.id }),
  },
  readChat: {
    charged: FAN_OUT,
    most: 4,
    by: () => member(usernames[300 + ++created] as string),
    input: () => ({ chat_id: crowd.id, seq: 1_000_000 }),
  },
  setChatState: { input: (n) => ({ chat_id: crowd.id, archived: n % 2 === 0, notify: "none" }) },
  clearChat: { most: 4, by: () => member(usernames[400 + ++created] as string), ...inChat },
  markUnread: { input: () => ({ chat_id: long.id, seq: 0 }) },
  getUnread: {},
  sendMessage: [
    { charged: FAN_OUT, input: () => ({ chat_id: crowd.id, content: LONGEST }) },
    { charged: FAN_OUT + 100, input: () => ({ chat_id: crowd.id, content: mentions }) },
    { input: () => ({ chat_id: long.id, content: "*\n".repeat(16_000) }) },
    { input: () => ({ chat_id: long.id, content: "[".repeat(32_000) }) },
  ],
  getChatHistory: [
    { input: () => ({ chat_id: long.id, ...page }) },
    { input: () => ({ chat_id: long.id, around: messageIds[50], ...page }) },
  ],
  getMessage: ofMessage,
  editMessage: {
    charged: FAN_OUT + 100,
    input: (n) => ({ message_id: inCrowd.id, content: n % 2 ? "none" : mentions }),
  },
  deleteMessages: {
    input: (n) => ({ chat_id: long.id, message_ids: messageIds.slice(90 + n, 91 + n) }),
  },
  deleteMessagesForMe: {
    input: () => ({ chat_id: long.id, message_ids: messageIds.slice(60, 90) }),
  },
  getUpdates: [
    { input: () => ({ chat_id: long.id, since_seq: 0, ...page }) },
    { input: () => ({ known, accounts_since: 0, own_since: 0 }) },
  ],
  searchMessages: [
    { input: () => ({ query: "word", chat_id: long.id, ...page }) },
    { input: () => ({ query: "w ".repeat(128), ...page }) },
  ],
  reportMessage: { input: () => ({ message_id: reported.id, reason: text(1000) }) },
  setMessageReaction: { charged: FAN_OUT, input: () => ({ message_id: inCrowd.id, emoji: "👍" }) },
  addReaction: { charged: FAN_OUT, input: () => ({ message_id: inCrowd.id, emoji: "🎉" }) },
  removeReaction: { charged: FAN_OUT, input: () => ({ message_id: inCrowd.id, emoji: "🎉" }) },
  getMessageReactions: { input: () => ({ message_id: inCrowd.id, ...page }) },
  watchPresence: [
    { input: () => ({ usernames: usernames.slice(0, 200) }) },
    // They share no conversation with the caller.
    { by: newcomer, input: () => ({ usernames: usernames.slice(0, 200) }) },
  ],
  setActivity: { input: () => ({ active: true }) },
  sendChatAction: { charged: FAN_OUT, input: () => ({ chat_id: crowd.id, action: "typing" }) },
  getMyAgents: {},
  createAgent: {
    code: "conflict",
    input: () => ({ name: "claude", kind: "model", provider: "claude", instructions: text(8000) }),
  },
  updateAgent: {
    input: (n) => ({
      agent_username: `${alice.username}:claude`,
      instructions: `${n}${text(7990)}`,
    }),
  },
  deleteAgent: { ...missing, input: () => ({ agent_username: `${alice.username}:no-one` }) },
  setAgentKey: { input: () => ({ provider: "claude", api_key: `sandbox-${"k".repeat(1000)}` }) },
  removeAgentKey: { input: () => ({ provider: "claude" }) },
  testAgentKey: {
    ownRate: true,
    input: () => ({ provider: "claude", api_key: "sandbox-0123456789" }),
  },
  getAgentModels: { ownRate: true, input: () => ({ provider: "claude" }) },
  setAgentProfile: { input: (n) => ({ provider: "claude", instructions: `${n}${text(7990)}` }) },
  setAgentLimits: { input: () => ({ provider: "claude", daily_tokens: 1_000_000 }) },
  setAgentTools: {
    code: "bad_request",
    input: () => ({
      agent_username: `${alice.username}:claude`,
      grants: uuids
        .slice(0, 64)
        .map((server_id) => ({ server_id, tool: "t".repeat(128), policy: "ask" })),
    }),
  },
  getAgentUsage: {},
  stopAgentTurn: { code: "not_found", input: () => ({ message_id: messageIds[0] }) },
  retryAgentTurn: { code: "not_found", input: () => ({ message_id: messageIds[0] }) },
  getTurn: { ...missing, input: () => ({ message_id: messageIds[0] }) },
  addToolServer: {
    ownRate: true,
    input: (n) => ({ name: `server ${n}`, url: "http://127.0.0.1:9/mcp" }),
  },
  getToolServers: { by: withToolServers },
  updateToolServer: { ...missing, input: () => ({ server_id: NOBODY, name: text(64) }) },
  refreshToolServer: { ...missing, ownRate: true, input: () => ({ server_id: NOBODY }) },
  authorizeToolServer: { ...missing, ownRate: true, input: () => ({ server_id: NOBODY }) },
  finishToolServer: {
    code: "conflict",
    ownRate: true,
    input: () => ({ state: "s".repeat(512), code: "c".repeat(4096) }),
  },
  removeToolServer: { ...missing, input: () => ({ server_id: NOBODY }) },
  getToolCalls: ofMessage,
  getPendingToolCalls: { by: withPendingCalls },
  decideToolCall: {
    ...missing,
    input: () => ({ call_id: NOBODY, decision: "approve", note: text(1000) }),
  },
  sendComponentAction: {
    charged: FAN_OUT,
    input: (n) => ({
      chat_id: crowd.id,
      message_id: form.id,
      action: `${n}${"a".repeat(1020)}`,
      fields: Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`f${n}`, text(100)])),
    }),
  },
  getGroupAgents: inChat,
  addGroupAgent: {
    charged: FAN_OUT,
    input: (n) => ({
      chat_id: crowd.id,
      agent_username: agentOf(alice, n === SINGLE ? "gpt" : "claude"),
      always_on: n % 2 === 0,
    }),
  },
  setGroupAgentMode: {
    charged: FAN_OUT,
    by: async () => {
      const off = { chat_id: crowd.id, agent_username: agentOf(alice), always_on: false };
      await alice.call("setGroupAgentMode", off);
      return alice;
    },
    input: (n) => ({
      chat_id: crowd.id,
      agent_username: `${alice.username}:claude`,
      always_on: n % 2 === 0,
    }),
  },
  removeGroupAgent: {
    charged: FAN_OUT,
    most: 1,
    by: async () => {
      const gpt = { chat_id: crowd.id, agent_username: agentOf(alice, "gpt") };
      await alice.call("addGroupAgent", gpt);
      return alice;
    },
    input: () => ({ chat_id: crowd.id, agent_username: agentOf(alice, "gpt") }),
  },
  stopChatAgents: inChat,
  claimTurn: { ...asAgent },
  writeTurn: {
    charged: FAN_OUT,
    most: 1,
    by: withTurn,
    input: () => ({ turn_id: turn, delta: LONGEST.slice(0, 16_384), offset: 0 }),
  },
  setTurnStatus: {
    charged: FAN_OUT,
    most: 1,
    by: withTurn,
    input: () => ({ turn_id: turn, text: text(200) }),
  },
  finishTurn: {
    charged: FAN_OUT,
    most: 1,
    by: withTurn,
    input: () => ({ turn_id: turn, status: "failed", error: text(300) }),
  },
  createAgentToken: { input: () => ({ agent_username: agent.username, name: text(64) }) },
  getAgentTokens: {},
  revokeAgentToken: { ...missing, input: () => ({ token_id: NOBODY }) },
  createUpload: { input: (n) => ({ chat_id: long.id, name: `${n}${text(120)}`, size: 1 }) },
  cancelUpload: { ...missing, input: () => ({ file_id: NOBODY }) },
  getFileLinks: { input: () => ({ file_ids: uuids }) },
  getChatFiles: { input: () => ({ chat_id: long.id, ...page }) },
  createIncomingHook: { input: (n) => ({ chat_id: long.id, name: `hook-${n}` }) },
  getIncomingHooks: { input: () => ({ chat_id: long.id }) },
  deleteIncomingHook: { ...missing, input: () => ({ hook_id: NOBODY }) },
  getAccounts: { ...asService, input: () => ({ query: "u", ...page }) },
  suspendAccount: { ...asService, ...missing, input: () => ({ username: "nobody_there" }) },
  restoreAccount: { ...asService, ...missing, input: () => ({ username: "nobody_there" }) },
  eraseAccount: { ...asService, ...missing, input: () => ({ username: "nobody_there" }) },
  getStatistics: asService,
  getAuditLog: { ...asService, input: () => page },
  getReports: { ...asService, input: () => page },
  resolveReport: { ...asService, ...missing, input: () => ({ report_id: NOBODY }) },
  createWebhook: {
    ...asService,
    input: () => ({ url: "http://127.0.0.1:9/", events: [], chat_id: agentChat.id }),
  },
  getWebhooks: asService,
  setWebhook: { ...asService, ...missing, input: () => ({ webhook_id: NOBODY, disabled: true }) },
  deleteWebhook: { ...asService, ...missing, input: () => ({ webhook_id: NOBODY }) },
  getDeliveries: { ...asService, ...missing, input: () => ({ webhook_id: NOBODY, ...page }) },
  replayDelivery: { ...asService, ...missing, input: () => ({ delivery_id: 1 }) },
  upsertUsers: {
    ...asService,
    input: (n) => ({
      users: Array.from({ length: 20 }, (_, k) => ({ external_id: `more ${n} ${k}` })),
    }),
  },
  upsertChats: {
    ...asService,
    input: (n) => ({
      chats: Array.from({ length: 20 }, (_, k) => ({
        external_id: `group ${n} ${k}`,
        members: usernames.slice(0, 50),
        metadata: { note: text(2000) },
      })),
    }),
  },
  issueToken: { ...asService, input: () => ({ username: usernames[0] }) },
  revokeTokens: { ...asService, input: () => ({ username: usernames[1] }) },
  importMessages: {
    ...asService,
    input: (n) => ({
      chat_id: long.id,
      messages: [
        {
          sender: alice.username,
          content: LONGEST,
          created_at: "2020-01-01T00:00:00Z",
          client_msg_id: `i${n}`,
        },
      ],
    }),
  },
};

/** CPU time that the server has used, on all its threads, in milliseconds. */
function cpuMs(): number {
  const fields =
    readFileSync(`/proc/${server.pid}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
  // utime and stime, fields 14 and 15, in ticks of 1/100 s; the state is field 3.
  return (Number(fields[11]) + Number(fields[12])) * STEP_MS;
}

/** What the server has charged for calls since its start. */
async function chargedInAll(): Promise<number> {
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  return Number(/^parley_call_cost_total (.+)$/m.exec(metrics)?.[1]);
}

interface Measured {
  cpu: number;
  bytes: number;
  /** What a call was charged. */
  cost: number;
  /** Of it, what follows from the declaration, the input and the answer. */
  declared: number;
  codes: ReadonlySet<string>;
}

const codeOf = ({ body }: Answer) => (body.ok ? "ok" : body.code);
const lengthOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value) ?? "");

/** The CPU time of a call, which is repeated until it has taken long enough to be measured. */
async function cpuOf(most: number, call: (n: number) => Promise<void>): Promise<number> {
  const before = cpuMs();
  let calls = 0;
  while (calls < most) {
    await call(calls++);
    if (calls >= 4 && cpuMs() - before >= MEASURED_MS && most <= MAX_REPEATS) break;
  }
  return (cpuMs() - before) / calls;
}

async function measure(
  name: OperationName,
  row: Row,
  { repeats = MAX_REPEATS, from = 0 } = {},
): Promise<Measured> {
  const { input = () => ({}), by = () => alice } = row;
  const prepared: { caller: Person | Backend | null; input: unknown }[] = [];
  const most = Math.min(repeats, row.most ?? (by === newcomer ? 4 : repeats));
  for (let n = 0; n < most; n++) prepared.push({ caller: await by(), input: input(from + n) });
  const codes = new Set<string>();
  let bytes = 0;
  let calls = 0;
  const before = await chargedInAll();
  const cpu = await cpuOf(most, async (n) => {
    const { caller = null, input: given } = prepared[n] ?? {};
    const answer =
      caller instanceof Backend
        ? await caller.post(name, given)
        : await post(server.url, name, given, caller?.token);
    calls++;
    codes.add(codeOf(answer));
    bytes = Math.max(bytes, lengthOf(answer.body));
  });
  const charged = (await chargedInAll()) - before;
  const declared = costOf(name, prepared[0]?.input ?? {}, bytes);
  // Nobody pays for the calls of service keys.
  const cost = prepared[0]?.caller instanceof Person ? charged / calls : declared;
  return { cpu, bytes, cost, declared, codes };
}

function costOf(name: OperationName, input: object, bytes: number): number {
  const { call, each = {} } = (operations[name] as Operation).cost;
  const entries = Object.entries(each).map(
    ([field, cost]) => Object.keys(Reflect.get(input, field) ?? {}).length * cost,
  );
  const sum = entries.reduce((total, cost) => total + cost, 0);
  return call + sum + Math.floor(lengthOf(input) / 4096) + Math.floor(bytes / 16_384);
}

/** Of the first call. Rates of its own may refuse it if an earlier row has used them. */
const acceptedCodes = ({ code = "ok", ownRate }: Row) => [
  code,
  ...(ownRate ? ["rate_limited"] : []),
];

const plain = await measure("getMe", {}, { repeats: 400 });

test("every operation has a row", () => {
  expect(Object.keys(rows).toSorted()).toEqual(Object.keys(operations).toSorted());
});

describe.each(Object.keys(rows) as OperationName[])("%s", (name) => {
  const each = [rows[name]].flat() as Row[];
  test.each(each.map((row, place) => [place + 1, row] as const))(
    "takes no more than it costs, with its worst input (%d)",
    async (_, row) => {
      if (row.charged !== undefined) {
        const { cost, declared } = await measure(name, row, { repeats: 1, from: SINGLE });
        expect(cost, "is charged").toBeGreaterThanOrEqual(declared + row.charged);
      }
      const first = await measure(name, row);
      // A search that reaches its deadline on a busy machine is `unavailable`; the next one is not.
      expect(acceptedCodes(row).some((code) => first.codes.has(code)) || [...first.codes]).toBe(
        true,
      );
      expect(first.codes).not.toContain("internal");
      expect(first.bytes).toBeLessThan(BACKLOG_BYTES / 2);
      if (row.ownRate) return;
      const again = (round: number) => measure(name, row, { from: round * MAX_REPEATS });
      await expectWithin(first, again);
    },
  );
});

/** Work in the background, such as indexing what earlier rows have written, may count as well. */
async function expectWithin(
  { cpu, cost }: Pick<Measured, "cpu" | "cost">,
  again: (round: number) => Promise<Pick<Measured, "cpu">>,
): Promise<void> {
  const limit = (FREE_PLAIN_CALLS + FACTOR * cost) * plain.cpu;
  let least = cpu;
  for (let round = 1; least > limit && round < 4; round++) {
    least = Math.min(least, (await again(round)).cpu);
  }
  expect(least, "ms per call").toBeLessThanOrEqual(limit);
}

const FRAME_CHARACTERS = 214_000;
const PICTURE_SIDE = 1000;
/** About what `image_pixels_per_hour` allows in the time in which `cost_per_second` refills one. */
const PIXELS_PER_COST = 2000;
const inMcp = (name: "getChatHistory" | "searchMessages") => 5 + operations[name].cost.call;
const send = await sendingsOf(alice, long);
afterAll(() => send[Symbol.asyncDispose]());

const sendings: Record<string, Sending> = {
  "20,000 asterisks to an incoming hook": send.toHook("*\n".repeat(20_000)),
  "links without an end to an incoming hook": send.toHook("<http://a|".repeat(4000)),
  "a frame that is no call": send.frame(`{"method":1,"params":"${"x".repeat(FRAME_CHARACTERS)}"}`),
  "a frame that is not JSON": send.frame("[".repeat(FRAME_CHARACTERS)),
  "a frame of a long unknown method": send.frame(`{"method":"${"x".repeat(FRAME_CHARACTERS)}"}`),
  "a frame of an unknown method with many keys": send.frame(
    JSON.stringify({ method: "messages.sent", params: known }),
  ),
  "16 histories in one body to /mcp": send.toMcp(
    tools("get_chat_history", { chat_id: long.id, ...page }),
    { cost: 16 * inMcp("getChatHistory"), answer: /the results of one body have more than/ },
  ),
  "16 searches in one body to /mcp": send.toMcp(tools("search_messages", { query: "word" }), {
    cost: 16 * inMcp("searchMessages"),
    answer: /"result"/,
  }),
  "a deep body to /mcp": send.toMcp("[".repeat(2500), { cost: 5, answer: /bad_request/ }),
  "a small picture of many pixels": send.picture(
    stripedPng(PICTURE_SIDE, PICTURE_SIDE, [0, 0, 0]),
    { cost: PICTURE_SIDE ** 2 / PIXELS_PER_COST, answer: /"status":"ready"/ },
  ),
  "a small picture of too many pixels": send.picture(new Uint8Array(hugePng(16_384, 16_384)), {
    cost: 1,
    answer: /payload_too_large/,
  }),
  "an answer that is not read": send.unread("getChatHistory", { chat_id: long.id, ...page }),
};

describe("beside operations", () => {
  test.each(Object.entries(sendings))("%s takes no more than it costs", async (_, sending) => {
    const again = async () => {
      const ready: (() => Promise<string>)[] = [];
      for (let n = 0; n < 4; n++) ready.push(await sending.prepare());
      let bytes = 0;
      const cpu = await cpuOf(ready.length, async (n) => {
        const answer = (await ready[n]?.()) ?? "";
        expect(answer).toMatch(sending.answer);
        bytes = answer.length;
      });
      return { cpu, cost: sending.cost + Math.floor(bytes / 16_384) };
    };
    await expectWithin(await again(), again);
  });
});
