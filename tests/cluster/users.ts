import { agentOf, liftLimits, type Person, type Socket, signUp } from "@parley/testkit/client.ts";
import { type Cluster, startCluster } from "@parley/testkit/cluster.ts";
import { providersAt, type Responder } from "@parley/testkit/provider-server.ts";
import { noRates } from "@parley/testkit/server.ts";
import { startSharedProvider } from "@parley/testkit/shared-provider.ts";
import { clientOf, type TestClient } from "../../packages/client/test/support/clients.ts";
import { History } from "./history.ts";
import { type Random, seededRandom } from "./random.ts";

const WORDS = Array.from({ length: 16 }, (_, index) => `語${index} 🦜 `);
const WORD_MS = 70;
/** Some answers begin after this delay. */
const DELAY_MS = 2500;
const PROVIDERS = ["claude", "gpt"] as const;

/** The full answer of every agent. */
export const ANSWER = WORDS.join("");

/** An account with a client that reconnects to any node that is up. */
export interface TestUser {
  readonly person: Person;
  readonly client: TestClient;
  readonly random: Random;
}

/** Users who share conversations with agents, and what is needed to verify a run. */
export interface TestUsers extends AsyncDisposable {
  readonly cluster: Cluster;
  readonly members: readonly TestUser[];
  /** Owns the agents, is in every conversation and is never removed. */
  readonly owner: TestUser;
  /** Conversations with agents. */
  readonly chats: readonly string[];
  readonly history: History;
  /** The owner's sockets, one at each node, opened before the run. */
  readonly observers: readonly Socket[];
  /** The conversation counters before the run. */
  readonly counters: Readonly<Record<string, number>>;
  /** The length of each node's output before the run. */
  readonly logLengths: readonly number[];
}

/** A cluster whose agents call a test provider. */
export async function startAgentCluster({ nodes = 3, max_output_tokens = 1000 } = {}) {
  await using made = new AsyncDisposableStack();
  const sharedProvider = made.use(await startSharedProvider());
  const env = { ...noRates, ...providersAt(sharedProvider.url, { max_output_tokens }) };
  const cluster = made.use(await startCluster({ nodes, env }));
  await cluster.ready();
  const all = made.move();
  return { sharedProvider, cluster, [Symbol.asyncDispose]: () => all.disposeAsync() };
}
export type AgentCluster = Awaited<ReturnType<typeof startAgentCluster>>;

export interface UserOptions {
  people: number;
  chats: number;
  seed: number;
}

export async function createUsers(
  { sharedProvider, cluster }: AgentCluster,
  { people, chats: count, seed }: UserOptions,
): Promise<TestUsers> {
  const { url } = cluster;
  const persons: Person[] = [];
  for (let index = 0; index < people; index++) persons.push(await signUp(url, "member"));
  const members = persons.map((person, index) => ({
    person,
    client: clientOf(person, url, { timeoutMs: 3000, reconnectMs: { min: 20, max: 400 } }),
    random: seededRandom(seed * 1000 + index),
  }));
  const owner = members[0] as TestUser;
  const history = new History();
  for (const provider of PROVIDERS) {
    const api_key = `key-${Bun.randomUUIDv7()}`;
    sharedProvider.respond(api_key, answerSlowly(seededRandom(seed)));
    await owner.person.call("setAgentKey", { provider, api_key });
  }
  await liftLimits(owner.person);
  const agents = PROVIDERS.map((provider) => agentOf(owner.person, provider));
  const usernames = [...persons.slice(1).map(({ username }) => username), ...agents];
  const chats: string[] = [];
  for (let index = 0; index < count; index++) {
    const title = `Base ${index} of ${owner.person.username}`;
    const { result } = await history.record(
      owner.person.username,
      { kind: "start", title, usernames },
      () => owner.person.call("startChat", { title, usernames }),
      () => null,
    );
    chats.push(result.id ?? "");
  }
  const connections = members.map(async ({ client }) => {
    await client.connect();
    for (const chat of chats) await client.model.openChat(chat);
  });
  await Promise.all(connections);
  const sockets = cluster.nodes.map((node) => owner.person.at(node.url).connect());
  const observers = await Promise.all(sockets);
  return {
    cluster,
    members,
    owner,
    chats,
    history,
    observers,
    counters: await countersOf(owner.person),
    logLengths: cluster.nodes.map((node) => node.output().length),
    async [Symbol.asyncDispose]() {
      for (const { client } of members) client.close();
      for (const observer of observers) await observer[Symbol.asyncDispose]();
    },
  };
}

async function countersOf(person: Person): Promise<Record<string, number>> {
  const compared = await person.call("getUpdates", { known: {} });
  if (!("new" in compared)) throw new Error("getUpdates did not compare");
  return Object.fromEntries(compared.new.map(({ conversation_id, seq }) => [conversation_id, seq]));
}

const answerSlowly =
  (random: Random): Responder =>
  async ({ head, write, end, frames }) => {
    await head(200);
    await write(frames.begin);
    if (random.number() < 0.3) await Bun.sleep(DELAY_MS);
    for (const word of WORDS) {
      await write(frames.text(word));
      await Bun.sleep(WORD_MS);
    }
    await write(frames.end("stop"));
    await end();
  };
