import type { Socket } from "@parley/testkit/client.ts";
import type { TestNode } from "@parley/testkit/cluster.ts";
import { fetchView, type View } from "@parley/testkit/model.ts";
import type { Client } from "../../packages/client/src/index.ts";
import { online } from "../../packages/client/test/support/clients.ts";
import { loadAll, viewOf, withoutOwnSeq } from "../../packages/client/test/support/view.ts";
import { check } from "./checker.ts";
import { checkEvents } from "./checks/events.ts";
import { checkTurns } from "./checks/turns.ts";
import { ANSWER, type Crew, type Member } from "./crew.ts";
import { type FaultName, faultOf } from "./faults.ts";
import type { FinalChat, FinalState, Violation } from "./final-state.ts";

/** A turn whose node has died is taken over within 5 s; then it may take its time to answer. */
const TURNS_MS = 30_000;
/** What a node has missed is found within some seconds. */
const HEALING_MS = 15_000;
const PAGE = 100;

/** What happened, and to which node. */
export interface Happened {
  fault: FaultName;
  node: TestNode;
}

/** All that is wrong after everything has been put right. */
export async function verify(crew: Crew, happened: readonly Happened[]): Promise<Violation[]> {
  await crew.cluster.ready();
  const violations = [
    ...crew.cluster.nodes.flatMap((node, place) =>
      checkNode(node, node.output().slice(crew.printed[place]), happened),
    ),
    ...(await turnsAtRest(crew)),
  ];
  for (const member of crew.members) violations.push(...(await checkModel(crew, member)));
  const state = await finalState(crew);
  violations.push(...check(crew.history.operations, state));
  for (const [place, socket] of crew.witnesses.entries()) {
    const node = crew.cluster.nodes[place] as TestNode;
    violations.push(...(await checkWitness(crew, socket, node, state, happened)));
  }
  return violations;
}

const wrong = (what: string): Violation => ({ what, operations: [] });

/** Nodes go on whatever happens, and complain of nothing that has not happened. */
function checkNode(node: TestNode, said: string, happened: readonly Happened[]): Violation[] {
  const explained = happened.flatMap(({ fault }) => faultOf(fault).explains ?? []);
  const unexplained = said
    .split("\n")
    .filter((line) => /"level":(50|60)/.test(line) || /^error|panic/i.test(line))
    .filter((line) => !explained.some((pattern) => pattern.test(line)));
  return [
    ...(node.hasCrashed() ? [wrong(`${node.name} has crashed: ${said.slice(-2000)}`)] : []),
    ...unexplained.slice(0, 5).map((line) => wrong(`${node.name} says: ${line}`)),
  ];
}

/** Waits until agents have nothing more to do. */
async function turnsAtRest(crew: Crew): Promise<Violation[]> {
  const deadline = Date.now() + TURNS_MS;
  for (;;) {
    const chats = chatsOf(await fetchView(crew.keeper.person, PAGE));
    const left = checkTurns(crew.history.operations, { ...EMPTY, chats });
    if (left.length === 0) return [];
    if (Date.now() > deadline) return left;
    await Bun.sleep(250);
  }
}

const EMPTY: FinalState = { chats: [], receipts: [], usage: [], answer: ANSWER };

/** A client that has been through it all shows what any node says. */
async function checkModel({ cluster }: Crew, { client, person, chances }: Member) {
  const node = chances.pick(cluster.nodes) as TestNode;
  const deadline = Date.now() + HEALING_MS;
  for (;;) {
    await settled(client);
    const expected = withoutOwnSeq(await fetchView(person.at(node.url), PAGE));
    const actual = withoutOwnSeq(viewOf(client));
    if (Bun.deepEquals(actual, expected)) return [];
    if (Date.now() > deadline) {
      const what = `the model of ${person.username} is not what ${node.name} says`;
      return [wrong(`${what}: ${difference(actual, expected)}`)];
    }
    await Bun.sleep(100);
  }
}

async function settled(client: Client): Promise<void> {
  await online(client);
  await loadAll(client);
  // Answers come on the same line as events: whatever was on its way is here.
  await client.getMe();
}

/** The first place where two values differ. */
function difference(actual: unknown, expected: unknown, path = ""): string {
  if (Bun.deepEquals(actual, expected)) return "";
  const isPlain = (value: unknown): value is Record<string, unknown> =>
    typeof value === "object" && value !== null;
  if (!isPlain(actual) || !isPlain(expected)) {
    return `${path}: ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`;
  }
  const keys = new Set([...Object.keys(actual), ...Object.keys(expected)]);
  for (const key of keys) {
    const found = difference(actual[key], expected[key], `${path}.${key}`);
    if (found) return found;
  }
  return `${path}: ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`;
}

async function finalState({ keeper, members }: Crew): Promise<FinalState> {
  const { person } = keeper;
  const chats = chatsOf(await fetchView(person, PAGE));
  for (const chat of chats) chat.reacted = reactedIn(chat.id, members);
  const answers = chats.flatMap(({ messages }) => messages.filter(({ turn }) => turn));
  const receipts: FinalState["receipts"][number][] = [];
  for (const { id } of answers) receipts.push(await person.call("getTurn", { message_id: id }));
  const { items: usage } = await person.call("getAgentUsage");
  return { chats, receipts, usage, answer: ANSWER };
}

const chatsOf = (view: View): FinalChat[] =>
  Object.values(view).map(({ conversation, messages }) => ({
    id: conversation.id,
    title: conversation.title,
    seq: conversation.seq,
    members: conversation.participants.map(({ username }) => username),
    reads: conversation.reads,
    messages,
    reacted: {},
  }));

/** What their own clients show them, which was compared with what nodes say. */
function reactedIn(chat: string, members: readonly Member[]): FinalChat["reacted"] {
  const present = members.filter(({ client }) => client.model.get("chats").includes(chat));
  return Object.fromEntries(
    present.map(({ client, person }) => {
      const { items } = client.model.get(`messages:${chat}`);
      const mine = items.map(({ id, reactions }) => [
        id,
        reactions.filter(({ reacted }) => reacted).map(({ emoji }) => emoji),
      ]);
      return [person.username, Object.fromEntries(mine)];
    }),
  );
}

async function checkWitness(
  { counters }: Crew,
  socket: Socket,
  node: TestNode,
  state: FinalState,
  happened: readonly Happened[],
): Promise<Violation[]> {
  const isEnded = happened.some((each) => each.node === node && faultOf(each.fault).closesSockets);
  const isPowerLost = happened.some(({ fault }) => fault === "PostgreSQL stopped");
  const found = () => checkEvents(socket.events, counters, state, isPowerLost);
  if (isEnded) return socket.closed ? [] : [wrong(`a socket at ${node.name} has survived it`)];
  await socket.until(() => socket.closed || found().length === 0, "", HEALING_MS).catch(() => {});
  const closed = socket.closed && [
    wrong(`a socket at ${node.name} was closed: ${socket.closed.code}`),
  ];
  return closed ?? found().map(({ what }) => wrong(`a socket at ${node.name} ${what}`));
}
