import { afterAll, describe, expect, test } from "bun:test";
import {
  type Access,
  type Conversation,
  type Message,
  type OperationName,
  operations,
} from "@parley/protocol";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import {
  agentOf,
  answerTo,
  groupOf,
  outcome,
  Person,
  post,
  RawSocket,
  Socket,
  say,
} from "@parley/testkit/client.ts";
import { upload, uploadPicture } from "@parley/testkit/files.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";

/**
 * Who may call what: every operation with every kind of caller, on both transports. The outcome of a
 * call follows from the access level of the operation and from its row in the table below.
 */

const server = await startServer({
  ...noRates,
  ...serviceKeySetting(),
  PARLEY_OPERATORS: "as_operator",
});
afterAll(() => server[Symbol.asyncDispose]());
const backend = new Backend(server.url);

/** The people of the matrix, in relation to a group with an agent and a message of the participant. */
const roles = ["stranger", "participant", "former", "admin", "owner", "operator"] as const;
type Role = (typeof roles)[number];

/** An external agent of the owner takes part in the group too. */
const callers = [...roles, "agent", "nobody", "suspended", "service", "delegate"] as const;
type Caller = (typeof callers)[number];

await server.command("users", "create", "as_operator");
const names = [...roles, "suspended", "victim"] as const;
await backend.call("upsertUsers", {
  users: names
    .filter((name) => name !== "operator")
    .map((name) => ({ external_id: name, username: `as_${name}` })),
});

/** A person with a token of their own, which the call may end. */
async function signedIn(name: Role | "suspended"): Promise<Person> {
  const { access_token, account } = await backend.call("issueToken", { username: `as_${name}` });
  return new Person(server.url, access_token, account);
}

const people = Object.fromEntries(
  await Promise.all(roles.map(async (role) => [role, await signedIn(role)] as const)),
) as Record<Role, Person>;
const suspended = await signedIn("suspended");
await backend.call("suspendAccount", { username: "as_suspended" });
for (const role of roles) {
  await people[role].call("setAgentKey", { provider: "claude", api_key: "sandbox-0123456789" });
}

const { username: programName } = await people.owner.call("createAgent", {
  name: "program",
  kind: "external",
});
const { token: programToken } = await people.owner.call("createAgentToken", {
  agent_username: programName,
});
const program = new Person(
  server.url,
  programToken,
  await people.owner.call("getUser", { username: programName }),
);

const PASSWORD = "correct horse battery";

/** Creates an account with a password. */
async function newAccount() {
  const account = { username: fresh(), password: PASSWORD };
  await post(server.url, "signUp", account);
  return account;
}

/** The token of a reset link for a new account. */
async function resetToken(): Promise<string> {
  const { username } = await newAccount();
  const { url } = await backend.call("createPasswordReset", { username });
  return new URL(url).hash.slice(1);
}

/** A new group of the admin, the participant and the owner, who has an agent in it. */
interface Group {
  readonly chat: Conversation;
  readonly chat_id: string;
  /** A message of the participant. */
  readonly message: Message;
}

async function newGroup(): Promise<Group> {
  const { admin, participant, former, owner } = people;
  const chat = await groupOf(admin, participant, former, owner);
  const chat_id = chat.id;
  await owner.call("addGroupAgent", { chat_id, agent_username: agentOf(owner) });
  await owner.call("addGroupAgent", { chat_id, agent_username: programName });
  const message = await say(participant, chat, "hello");
  await admin.call("removeChatMember", { chat_id, username: former.username });
  return { chat, chat_id, message };
}

/** An agent's answer to the participant. */
async function answered({ chat, chat_id }: Group): Promise<{ message_id: string }> {
  await using socket = await people.participant.connect();
  const trigger = await say(people.participant, chat, `@${agentOf(people.owner)} hello`);
  const { id } = await answerTo(socket, trigger);
  await people.participant.call("stopChatAgents", { chat_id });
  return { message_id: id };
}

interface Row {
  /** The roles that may make the call, of an operation of access `session`. */
  readonly roles?: readonly Role[];
  /** A valid input, in a new group. */
  input?(group: Group, caller: Caller): object | Promise<object>;
  /** What the call answers those who may make it. Default: `ok`. */
  readonly admitted?: string;
  /** What it answers the external agent, if that differs. */
  readonly agent?: string;
}

let count = 0;
const fresh = () => `fresh_${process.pid}_${++count}`;

const inGroup = ["participant", "admin", "owner"] as const;
const provider = "claude";
const anybody: Row = { roles };
/** Of participants: the input has the conversation. */
const ofChat = (more: object = {}): Row => ({
  roles: inGroup,
  input: ({ chat_id }) => ({ chat_id, ...more }),
});
const ofMessage = (more: object = {}, allowed: readonly Role[] = inGroup): Row => ({
  roles: allowed,
  input: ({ message }) => ({ message_id: message.id, ...more }),
});
const ofTurn = (admitted = "ok"): Row => ({ roles: inGroup, admitted, input: answered });
const ofAgent = (agent: string, more: object = {}): Row => ({
  roles: ["owner"],
  input: ({ chat_id }) => ({
    chat_id,
    agent_username: agentOf(people.owner, agent),
    ...more,
  }),
});
/** A webhook for a conversation of the operator, in which nothing happens. */
async function webhookInput() {
  const { id } = await groupOf(people.operator, people.participant);
  return { url: "https://1.1.1.1/hook", events: ["events.messageDeleted"], chat_id: id };
}
const ofWebhook = (more: object = {}): Row => ({
  input: async () => {
    const { id } = await backend.call("createWebhook", await webhookInput());
    return { webhook_id: id, ...more };
  },
});
/** A report of the participant's message. */
async function newReport({ message }: Group): Promise<{ report_id: string }> {
  await people.admin.call("reportMessage", { message_id: message.id, reason: "spam" });
  const { items } = await backend.call("getReports", { resolved: false });
  const report = items.find((each) => each.message.id === message.id);
  return { report_id: report?.id ?? "" };
}
/** The people of the matrix have no second factor. */
const withoutFactor: Row = {
  roles,
  admitted: "not_found",
  input: () => ({ password: "wrong", code: "123456" }),
};
/** The id of a file that the person has sent to the conversation. */
async function sentFile(person: Person, chat_id: string): Promise<string> {
  const { id } = await upload(person, chat_id, "notes.txt", "hello");
  await person.call("sendMessage", { chat_id, content: "", file_ids: [id] });
  return id;
}
/** A picture of the caller; of those who take no part, the file is not looked for. */
async function ofPicture(_: object, caller: Caller) {
  const role = caller === "delegate" ? "participant" : caller;
  const person = people[role as Role] ?? people.participant;
  return { file_id: (await uploadPicture(person)).id };
}
const unknownTurn = (more: object): Row => ({
  admitted: "not_found",
  input: () => ({ turn_id: 999_999_999, ...more }),
});
/** A server that nobody has. */
const ofToolServer: Row = {
  roles,
  admitted: "not_found",
  input: () => ({ server_id: "00000000-0000-7000-8000-000000000000" }),
};
const ofVictim: Row = { input: () => ({ username: "as_victim" }) };

const freshAgent = () => `agent-${++count}`;
/** An agent of the owner: a new one for the owner, who deletes it. */
async function createdAgent(_: Group, caller: Caller): Promise<{ agent_username: string }> {
  if (caller !== "owner") return { agent_username: agentOf(people.owner) };
  const created = { name: freshAgent(), kind: "model", provider } as const;
  return { agent_username: (await people.owner.call("createAgent", created)).username };
}

/** Every operation has a row: without one, this does not compile, and the first test fails. */
const rows: Record<OperationName, Row> = {
  signUp: { input: () => ({ username: fresh(), password: PASSWORD }) },
  // Several sign-ins to one account at the same time would be throttled.
  signIn: { input: newAccount },
  getSignInMethods: {},
  // No issuer is configured.
  startOidcSignIn: { admitted: "not_found" },
  finishOidcSignIn: {
    admitted: "not_found",
    input: () => ({ flow: "flow", state: "state", code: "code" }),
  },
  // The people of the matrix have no password.
  changePassword: {
    roles: [],
    input: () => ({ current_password: "wrong", new_password: PASSWORD }),
  },
  confirmPassword: { roles: [], input: () => ({ password: "wrong" }) },
  signOut: anybody,
  getSessions: anybody,
  revokeSession: {
    roles,
    admitted: "not_found",
    input: () => ({ session_id: Bun.randomUUIDv7() }),
  },
  getSecondFactor: anybody,
  beginSecondFactor: { roles: [], input: () => ({ password: "wrong" }) },
  confirmSecondFactor: { roles, admitted: "not_found", input: () => ({ code: "123456" }) },
  renewRecoveryCodes: withoutFactor,
  removeSecondFactor: withoutFactor,
  getMe: anybody,
  getUser: { roles, input: () => ({ username: "as_admin" }) },
  getUsers: anybody,
  getProfiles: { roles, input: () => ({ usernames: ["as_admin"] }) },
  setAvatar: { roles, input: ofPicture },
  updateMe: { roles, input: () => ({ display_name: "A name" }) },
  exportMe: anybody,
  // Nobody of the matrix confirms it: they are needed.
  deleteMe: { roles, admitted: "bad_request", input: () => ({ username: "as_nobody" }) },
  blockUser: { roles, input: () => ({ username: "as_victim" }) },
  unblockUser: { roles, input: () => ({ username: "as_victim" }) },
  getBlocked: anybody,
  startChat: { roles, input: () => ({ usernames: ["as_victim"] }) },
  getChats: anybody,
  getChat: ofChat(),
  createUpload: ofChat({ name: "notes.txt", size: 5 }),
  cancelUpload: { roles, admitted: "not_found", input: () => ({ file_id: Bun.randomUUIDv7() }) },
  getFileLinks: {
    roles: inGroup,
    input: async ({ chat_id }) => ({ file_ids: [await sentFile(people.participant, chat_id)] }),
  },
  getChatFiles: ofChat(),
  setChatPicture: {
    roles: inGroup,
    input: async ({ chat_id }, caller) => ({ chat_id, ...(await ofPicture({}, caller)) }),
  },
  setChatTitle: ofChat({ title: "Title" }),
  addChatMembers: ofChat({ usernames: ["as_victim"] }),
  removeChatMember: {
    roles: ["participant", "admin"],
    input: ({ chat_id }) => ({ chat_id, username: "as_participant" }),
  },
  leaveChat: ofChat(),
  readChat: ofChat({ seq: 1 }),
  setChatState: ofChat({ pinned: true }),
  clearChat: ofChat(),
  markUnread: ofChat({ seq: 0 }),
  getUnread: anybody,
  sendMessage: ofChat({ content: "hello" }),
  getChatHistory: ofChat(),
  getMessage: ofMessage(),
  editMessage: { ...ofMessage({ content: "edited" }, ["participant"]), agent: "forbidden" },
  deleteMessages: {
    roles: ["participant", "admin"],
    agent: "forbidden",
    input: ({ chat_id, message }) => ({ chat_id, message_ids: [message.id] }),
  },
  deleteMessagesForMe: {
    roles: inGroup,
    input: ({ chat_id, message }) => ({ chat_id, message_ids: [message.id] }),
  },
  getUpdates: ofChat({ since_seq: 0 }),
  searchMessages: ofChat({ query: "hello" }),
  // Nobody reports their own message.
  reportMessage: ofMessage({ reason: "spam" }, ["admin", "owner"]),
  setMessageReaction: ofMessage({ emoji: "👍" }),
  addReaction: ofMessage({ emoji: "👍" }),
  removeReaction: ofMessage({ emoji: "👍" }),
  getMessageReactions: ofMessage(),
  sendChatAction: ofChat({ action: "typing" }),
  watchPresence: { roles, input: () => ({ usernames: ["as_participant", "nobody_there"] }) },
  setActivity: { roles, input: () => ({ active: false }) },
  getMyAgents: anybody,
  createAgent: { roles, input: () => ({ name: freshAgent(), kind: "model", provider }) },
  updateAgent: {
    roles: ["owner"],
    input: () => ({ agent_username: agentOf(people.owner), instructions: null }),
  },
  deleteAgent: { roles: ["owner"], input: createdAgent },
  setAgentKey: { roles, input: () => ({ provider, api_key: "sandbox-0123456789" }) },
  removeAgentKey: { roles, input: () => ({ provider: "gpt" }) },
  testAgentKey: { roles, input: () => ({ provider }) },
  getAgentModels: { roles, input: () => ({ provider }) },
  setAgentProfile: { roles, input: () => ({ provider, display_name: "An agent" }) },
  setAgentLimits: { roles, input: () => ({ provider, daily_tokens: null }) },
  setAgentTools: {
    roles: ["owner"],
    input: () => ({ agent_username: agentOf(people.owner), grants: [] }),
  },
  addToolServer: { roles, input: () => ({ name: fresh(), url: "https://tools.invalid/mcp" }) },
  getToolServers: anybody,
  updateToolServer: ofToolServer,
  refreshToolServer: ofToolServer,
  authorizeToolServer: ofToolServer,
  finishToolServer: { roles, admitted: "conflict", input: () => ({ state: "unknown" }) },
  removeToolServer: ofToolServer,
  getAgentUsage: { roles, input: () => ({ provider }) },
  createAgentToken: { roles: ["owner"], input: () => ({ agent_username: programName }) },
  getAgentTokens: anybody,
  revokeAgentToken: {
    roles,
    admitted: "not_found",
    input: () => ({ token_id: Bun.randomUUIDv7() }),
  },
  claimTurn: {},
  writeTurn: unknownTurn({ delta: "hello", offset: 0 }),
  setTurnStatus: unknownTurn({ text: "reading" }),
  finishTurn: unknownTurn({ status: "complete" }),
  stopAgentTurn: ofTurn("conflict"),
  retryAgentTurn: ofTurn(),
  getTurn: ofTurn(),
  getToolCalls: ofMessage(),
  getPendingToolCalls: anybody,
  decideToolCall: {
    roles,
    admitted: "not_found",
    input: () => ({ call_id: Bun.randomUUIDv7(), decision: "approve" }),
  },
  getGroupAgents: ofChat(),
  addGroupAgent: ofAgent("gpt"),
  removeGroupAgent: ofAgent("claude"),
  setGroupAgentMode: ofAgent("claude", { always_on: true }),
  stopChatAgents: ofChat(),
  sendComponentAction: {
    roles: inGroup,
    input: ({ chat_id, message }) => ({ chat_id, message_id: message.id, action: "dismiss:x" }),
  },
  upsertUsers: { input: () => ({ users: [{ external_id: fresh() }] }) },
  upsertChats: { input: () => ({ chats: [{ external_id: fresh(), members: ["as_owner"] }] }) },
  issueToken: ofVictim,
  revokeTokens: ofVictim,
  importMessages: {
    input: ({ chat_id }) => ({
      chat_id,
      messages: [
        {
          sender: "as_admin",
          content: "hello",
          created_at: "2024-05-01T09:30:00.000Z",
          client_msg_id: "1",
        },
      ],
    }),
  },
  getAccounts: {},
  suspendAccount: ofVictim,
  restoreAccount: ofVictim,
  createPasswordReset: { input: async () => ({ username: (await newAccount()).username }) },
  getPasswordReset: { input: async () => ({ token: await resetToken() }) },
  resetPassword: {
    input: async () => ({ token: await resetToken(), new_password: "battery horse staple" }),
  },
  getReports: {},
  resolveReport: { input: newReport },
  eraseAccount: {
    input: async () => {
      const username = fresh();
      await backend.call("upsertUsers", { users: [{ external_id: username, username }] });
      return { username };
    },
  },
  getAuditLog: {},
  getStatistics: {},
  createWebhook: { input: webhookInput },
  getWebhooks: {},
  setWebhook: ofWebhook({ disabled: true }),
  deleteWebhook: ofWebhook(),
  getDeliveries: ofWebhook(),
  createIncomingHook: {
    roles: ["admin"],
    input: ({ chat_id }) => ({ chat_id, name: "alerts" }),
  },
  getIncomingHooks: { roles: ["admin"], input: ({ chat_id }) => ({ chat_id }) },
  deleteIncomingHook: {
    roles: ["admin"],
    input: async ({ chat_id }) => {
      const { id } = await people.admin.call("createIncomingHook", { chat_id, name: "alerts" });
      return { hook_id: id };
    },
  },
  replayDelivery: { admitted: "not_found", input: () => ({ delivery_id: 1 }) },
};

/** The outcome of a call over HTTP that the contract promises. */
function expected(name: OperationName, caller: Caller): string {
  const access: Access = operations[name].access;
  const { roles: allowed = [], admitted = "ok", agent = admitted } = rows[name];
  const admits = (isAllowed: boolean) => (isAllowed ? admitted : "forbidden");
  if (access === "public") return admitted;
  if (caller === "nobody") return "unauthorized";
  if (caller === "agent") {
    return access === "agent" || operations[name].agents ? agent : "forbidden";
  }
  if (access === "agent") return caller === "suspended" ? "suspended" : "forbidden";
  if (caller === "suspended") return "suspended";
  // A service key acts for the participant. It has no session that it could sign out.
  if (caller === "delegate" && name === "signOut") return "bad_request";
  const role = caller === "delegate" ? "participant" : caller;
  if (access === "session") return admits(role !== "service" && allowed.includes(role));
  if (access === "service") return admits(caller === "service");
  return admits(caller === "service" || caller === "operator");
}

async function callOverHttp(name: OperationName, caller: Caller, input: object): Promise<string> {
  if (caller === "service" || caller === "delegate") {
    const key = caller === "delegate" ? backend.as("id:participant") : backend;
    return outcome(key.call(name, input as never));
  }
  if (caller === "nobody") {
    const { body } = await post(server.url, name, input);
    return body.ok ? "ok" : body.code;
  }
  if (caller === "agent") return outcome(program.call(name, input as never));
  const person = caller === "suspended" ? suspended : await signedIn(caller);
  return outcome(person.call(name, input as never));
}

const onSocket = [...roles, "agent"] as const;

async function callOnSocket(
  name: OperationName,
  caller: (typeof onSocket)[number],
  input: object,
): Promise<string> {
  const token =
    caller === "agent"
      ? programToken
      : (await backend.call("issueToken", { username: `as_${caller}` })).access_token;
  await using socket = await Socket.open(server.url, token);
  return await outcome(socket.call(name, input as never));
}

/** The outcomes for some callers, each in a group of its own. */
async function outcomes<Who extends Caller>(
  name: OperationName,
  list: readonly Who[],
  call: (caller: Who, input: object) => Promise<string>,
): Promise<Record<string, string>> {
  const entries = list.map(async (caller) => {
    const { input, giveBack } = await inputFor(name, caller);
    let found = await call(caller, input);
    // A search may reach its deadline on a busy machine.
    while (name === "searchMessages" && found === "unavailable") found = await call(caller, input);
    if (found !== "ok") giveBack();
    return [caller, found];
  });
  return Object.fromEntries(await Promise.all(entries));
}

/** Groups as new ones. Making one takes five calls, and most calls of the matrix are refused. */
const unchanged: Group[] = [];

async function inputFor(name: OperationName, caller: Caller) {
  const { input } = rows[name];
  const keep = { giveBack: () => {} };
  if (!input) return { input: {}, ...keep };
  // It needs no group.
  if (input.length === 0) return { input: await (input as () => object)(), ...keep };
  const group = unchanged.pop() ?? (await newGroup());
  const made = input(group, caller);
  // It may have called something in the group.
  if (made instanceof Promise) return { input: await made, ...keep };
  return { input: made, giveBack: () => void unchanged.push(group) };
}

test("every operation has its callers listed", () => {
  expect(Object.keys(rows).sort()).toEqual(Object.keys(operations).sort());
});

const all = Object.keys(operations) as OperationName[];

describe("access over HTTP", () => {
  test.each(all)("%s is for exactly the callers that may call it", async (name) => {
    const wanted = callers.map((caller) => [caller, expected(name, caller)]);
    const found = await outcomes(name, callers, (caller, input) =>
      callOverHttp(name, caller, input),
    );
    expect(found).toEqual(Object.fromEntries(wanted));
  });
});

describe("access on the socket", () => {
  test.each(all)("%s is for exactly the callers that may call it", async (name) => {
    const wanted = onSocket.map((caller) => [caller, expected(name, caller)]);
    const found = await outcomes(name, onSocket, (caller, input) =>
      callOnSocket(name, caller, input),
    );
    expect(found).toEqual(Object.fromEntries(wanted));
  });

  test.each([
    ["nobody", 401, () => ({ path: "/api/ws" })],
    ["suspended", 403, () => ({ path: `/api/ws?token=${suspended.token}` })],
    ["service", 403, () => ({ path: `/api/ws?token=${backend.key}` })],
    [
      "delegate",
      403,
      () => ({
        path: `/api/ws?token=${backend.key}`,
        headers: { "x-parley-as": "as_participant" },
      }),
    ],
  ] as const)("a caller of the kind «%s» cannot connect", async (_, status, request) => {
    const { path, headers = {} } = request() as { path: string; headers?: Record<string, string> };
    await using socket = await RawSocket.open(server.url, path, headers);
    expect(socket.answer?.status).toBe(status);
  });
});
