import { agentOf, liftLimits, type Person, type Socket, signUp } from "@parley/testkit/client.ts";
import { type Cluster, startCluster } from "@parley/testkit/cluster.ts";
import { providersAt, type Responder } from "@parley/testkit/provider-server.ts";
import { noRates } from "@parley/testkit/server.ts";
import { startSharedProvider } from "@parley/testkit/shared-provider.ts";
import { clientOf, type TestClient } from "../../packages/client/test/support/clients.ts";
import { History } from "./history.ts";
import { type Chances, chances } from "./random.ts";

const WORDS = Array.from({ length: 16 }, (_, place) => `語${place} 🦜 `);
const WORD_MS = 70;
/** Some think for a while before they speak. */
const THOUGHT_MS = 2500;
const PROVIDERS = ["claude", "gpt"] as const;

/** What agents say here, whoever asks them. */
export const ANSWER = WORDS.join("");

/** Somebody with a client that finds its way to whichever node is up. */
export interface Member {
  readonly person: Person;
  readonly client: TestClient;
  readonly chances: Chances;
}

/** Many people who share some conversations with agents. */
export interface Crew extends AsyncDisposable {
  readonly cluster: Cluster;
  readonly members: readonly Member[];
  /** Takes part in everything, is removed from nothing, and pays for the agents. */
  readonly keeper: Member;
  /** Conversations with agents. */
  readonly chats: readonly string[];
  readonly history: History;
  /** The keeper's sockets, one at each node, opened before anything happened. */
  readonly witnesses: readonly Socket[];
  /** The counters at that moment. */
  readonly counters: Readonly<Record<string, number>>;
  /** How much each node had printed by then. */
  readonly printed: readonly number[];
}

/** A provider whose answers take their time, and nodes that ask it. */
export async function startScene(nodes = 3) {
  await using made = new AsyncDisposableStack();
  const sharedProvider = made.use(await startSharedProvider());
  const env = { ...noRates, ...providersAt(sharedProvider.url, { max_output_tokens: 1000 }) };
  const cluster = made.use(await startCluster({ nodes, env }));
  await cluster.ready();
  const all = made.move();
  return { sharedProvider, cluster, [Symbol.asyncDispose]: () => all.disposeAsync() };
}
export type TestScene = Awaited<ReturnType<typeof startScene>>;

export interface CrewOptions {
  people: number;
  chats: number;
  seed: number;
}

export async function gatherCrew(
  { sharedProvider, cluster }: TestScene,
  { people, chats: count, seed }: CrewOptions,
): Promise<Crew> {
  const { url } = cluster;
  const persons: Person[] = [];
  for (let place = 0; place < people; place++) persons.push(await signUp(url, "member"));
  const members = persons.map((person, place) => ({
    person,
    client: clientOf(person, url, { timeoutMs: 3000, reconnectMs: { min: 20, max: 400 } }),
    chances: chances(seed * 1000 + place),
  }));
  const keeper = members[0] as Member;
  const history = new History();
  for (const provider of PROVIDERS) {
    const api_key = `key-${Bun.randomUUIDv7()}`;
    sharedProvider.respond(api_key, slowly(chances(seed)));
    await keeper.person.call("setAgentKey", { provider, api_key });
  }
  await liftLimits(keeper.person);
  const agents = PROVIDERS.map((provider) => agentOf(keeper.person, provider));
  const usernames = [...persons.slice(1).map(({ username }) => username), ...agents];
  const chats: string[] = [];
  for (let place = 0; place < count; place++) {
    const title = `Base ${place} of ${keeper.person.username}`;
    const { result } = await history.record(
      keeper.person.username,
      { kind: "start", title, usernames },
      () => keeper.person.call("startChat", { title, usernames }),
      () => null,
    );
    chats.push(result.id ?? "");
  }
  const connections = members.map(async ({ client }) => {
    await client.connect();
    for (const chat of chats) await client.model.openChat(chat);
  });
  await Promise.all(connections);
  const sockets = cluster.nodes.map((node) => keeper.person.at(node.url).connect());
  const witnesses = await Promise.all(sockets);
  return {
    cluster,
    members,
    keeper,
    chats,
    history,
    witnesses,
    counters: await countersOf(keeper.person),
    printed: cluster.nodes.map((node) => node.output().length),
    async [Symbol.asyncDispose]() {
      for (const { client } of members) client.close();
      for (const witness of witnesses) await witness[Symbol.asyncDispose]();
    },
  };
}

async function countersOf(person: Person): Promise<Record<string, number>> {
  const compared = await person.call("getUpdates", { known: {} });
  if (!("new" in compared)) throw new Error("a comparison was asked for");
  return Object.fromEntries(compared.new.map(({ conversation_id, seq }) => [conversation_id, seq]));
}

const slowly =
  (luck: Chances): Responder =>
  async ({ head, write, end, frames }) => {
    await head(200);
    await write(frames.begin);
    if (luck.number() < 0.3) await Bun.sleep(THOUGHT_MS);
    for (const word of WORDS) {
      await write(frames.text(word));
      await Bun.sleep(WORD_MS);
    }
    await write(frames.end("stop"));
    await end();
  };
