import { expect } from "bun:test";
import type { Conversation, Message } from "@parley/protocol";
import {
  agentOf,
  groupOf,
  liftLimits,
  type Person,
  people,
  replyTo,
  type Socket,
  say,
} from "./client.ts";
import { providersAt } from "./provider-server.ts";
import { noRates, startServer } from "./server.ts";
import { type PendingCall, startSharedProvider } from "./shared-provider.ts";

type SharedProvider = Awaited<ReturnType<typeof startSharedProvider>>;
type Participants = Record<"alice" | "bob" | "carol", Person>;

/** A group of alice (admin), bob and carol with an agent of alice's. */
export interface AgentGroup extends AsyncDisposable {
  chat: Conversation;
  /** The agent's API key. */
  key: string;
  /** The agent's username. */
  agent: string;
  /** A socket of bob's. */
  reader: Socket;
  /** Mentions the agent in a message, as bob unless someone else is given. */
  ask(text: string, person?: Person): Promise<Message>;
}

/** Starts a server, a provider that tests control, and four people. */
export async function startTurns() {
  const sharedProvider = await startSharedProvider();
  const server = await startServer({
    ...noRates,
    ...providersAt(sharedProvider.url, { max_output_tokens: 1000, context_tokens: 20_000 }),
  });
  const [alice, bob, carol, dave] = await people(server.url, "alice", "bob", "carol", "dave");
  for (const person of [alice, bob, carol, dave]) await liftLimits(person);
  return {
    sharedProvider,
    server,
    alice,
    bob,
    carol,
    dave,
    agentGroup: (options?: AgentGroupOptions) => makeAgentGroup({ alice, bob, carol }, options),
    /** Asks the agent and streams the beginning of its answer until bob has received it. */
    startAnswer: (group: AgentGroup, text = "Hel", person = bob) =>
      startAnswer(sharedProvider, group, text, person),
    /** No turn runs or waits in the conversation: turns are stored with their trigger. */
    expectNoTurns: async (chat: { id: string }) =>
      expect(await carol.call("stopChatAgents", { chat_id: chat.id })).toEqual({
        stopped: 0,
        cancelled: 0,
      }),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await sharedProvider[Symbol.asyncDispose]();
    },
  };
}

interface AgentGroupOptions {
  provider?: string;
  always_on?: boolean;
}

async function makeAgentGroup(
  { alice, bob, carol }: Participants,
  { provider = "claude", always_on = false }: AgentGroupOptions = {},
): Promise<AgentGroup> {
  const agent = agentOf(alice, provider);
  const key = await newKey(alice, provider);
  const chat = await groupOf(alice, bob, carol);
  await alice.call("addGroupAgent", { chat_id: chat.id, agent_username: agent, always_on });
  const reader = await bob.connect();
  return {
    chat,
    key,
    agent,
    reader,
    ask: (text, person = bob) => say(person, chat, `@${agent} ${text}`),
    async [Symbol.asyncDispose]() {
      await reader[Symbol.asyncDispose]();
      // A test may have stopped the server, or deleted the group.
      await carol.call("stopChatAgents", { chat_id: chat.id }).catch(() => undefined);
    },
  };
}

async function startAnswer(
  sharedProvider: SharedProvider,
  { ask, key, reader }: AgentGroup,
  text: string,
  person: Person,
) {
  const trigger = await ask("hello", person);
  const call = await sharedProvider.nextCall(key);
  await call.sendText(text);
  const message = await replyTo(reader, trigger);
  await reader.event("events.messageDelta", ({ id }) => id === message.id);
  return { trigger, call, message };
}

/** Stores a new API key, by which the shared provider tells the calls of this test from others. */
export async function newKey(person: Person, provider = "claude"): Promise<string> {
  const api_key = `key-${Bun.randomUUIDv7()}`;
  await person.call("setAgentKey", { provider, api_key });
  return api_key;
}

/** Sends the rest of an answer and completes it. */
export async function finish(call: PendingCall, ...texts: string[]) {
  await call.sendText(...texts);
  await call.complete();
}

/** The body of a request in the anthropic protocol. */
export interface ModelInput {
  model: string;
  max_tokens: number;
  system: string;
  messages: { role: string; content: string }[];
}
/** The first user text without the line at its beginning that tells what the participants are called. */
export const withoutNames = (text: string) => text.replace(/^\(In this conversation .*\)\n\n/, "");

/** The body without that line. */
export const bodyOf = ({ request }: Pick<PendingCall, "request">): ModelInput => {
  const body = request.body as unknown as ModelInput;
  const [first, ...rest] = body.messages;
  if (typeof first?.content !== "string") return body;
  return { ...body, messages: [{ ...first, content: withoutNames(first.content) }, ...rest] };
};
