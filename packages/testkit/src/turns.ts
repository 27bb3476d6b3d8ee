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
import { type HeldCall, providersAt, startStage } from "./provider-server.ts";
import { noRates, startServer } from "./server.ts";

type Stage = Awaited<ReturnType<typeof startStage>>;
type Cast = Record<"alice" | "bob" | "carol" | "dave", Person>;

export interface Place extends AsyncDisposable {
  chat: Conversation;
  key: string;
  agent: string;
  /** Bob's. */
  reader: Socket;
  ask(words: string, person?: Person): Promise<Message>;
}

/** A server, a provider that says what it is told to, and four people to try turns with. */
export async function startTurns() {
  const stage = await startStage();
  const server = await startServer({
    ...noRates,
    ...providersAt(stage.url, { max_output_tokens: 1000, context_tokens: 20_000 }),
  });
  const [alice, bob, carol, dave] = await people(server.url, "alice", "bob", "carol", "dave");
  const cast: Cast = { alice, bob, carol, dave };
  for (const person of Object.values(cast)) await liftLimits(person);
  return {
    stage,
    server,
    ...cast,
    /** A group of alice, bob and carol with an agent of alice's, and bob listening. Alice is its admin. */
    place: (options?: PlaceOptions) => makePlace(cast, options),
    /** Asks, and brings the answer so far that its first words have been heard. */
    begun: (here: Place, words = "Hel", person = bob) => begin(stage, here, words, person),
    /** Nothing of the conversation's agents runs or waits: turns are recorded with their trigger. */
    expectQuiet: async (chat: { id: string }) =>
      expect(await carol.call("stopChatAgents", { chat_id: chat.id })).toEqual({
        stopped: 0,
        cancelled: 0,
      }),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await stage[Symbol.asyncDispose]();
    },
  };
}

interface PlaceOptions {
  provider?: string;
  always_on?: boolean;
}

async function makePlace(
  { alice, bob, carol }: Cast,
  { provider = "claude", always_on = false }: PlaceOptions = {},
): Promise<Place> {
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
    ask: (words, person = bob) => say(person, chat, `@${agent} ${words}`),
    async [Symbol.asyncDispose]() {
      await reader[Symbol.asyncDispose]();
      await carol.call("stopChatAgents", { chat_id: chat.id }).catch(() => undefined);
    },
  };
}

async function begin(stage: Stage, { ask, key, reader }: Place, words: string, person: Person) {
  const trigger = await ask("hello", person);
  const call = await stage.next(key);
  await call.says(words);
  const message = await replyTo(reader, trigger);
  await reader.event("events.messageDelta", ({ id }) => id === message.id);
  return { trigger, call, message };
}

/** A key by which the provider knows this test's calls. */
export async function newKey(person: Person, provider = "claude"): Promise<string> {
  const api_key = `key-${Bun.randomUUIDv7()}`;
  await person.call("setAgentKey", { provider, api_key });
  return api_key;
}

/** Says the rest of an answer and ends it. */
export async function finish(call: HeldCall, ...words: string[]) {
  await call.says(...words);
  await call.ends();
}

/** What a provider is asked with. */
export interface ModelInput {
  model: string;
  max_tokens: number;
  system: string;
  messages: { role: string; content: string }[];
}
export const bodyOf = ({ request }: HeldCall) => request.body as unknown as ModelInput;
