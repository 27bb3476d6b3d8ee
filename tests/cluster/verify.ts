import type { Socket } from "@parley/testkit/client.ts";
import type { TestNode } from "@parley/testkit/cluster.ts";
import { fetchView, type View } from "@parley/testkit/model.ts";
import type { Client } from "../../packages/client/src/index.ts";
import { online } from "../../packages/client/test/support/clients.ts";
import { loadAll, viewOf, withoutOwnSeq } from "../../packages/client/test/support/view.ts";
import { check } from "./checker.ts";
import { checkEvents } from "./checks/events.ts";
import { checkTurns } from "./checks/turns.ts";
import { type FaultName, faultOf } from "./faults.ts";
import type { FinalChat, FinalState, Violation } from "./final-state.ts";
import { ANSWER, type TestUser, type TestUsers } from "./users.ts";

/** A turn of a dead node is taken over within 5 s on an idle machine, and then needs time to answer. */
const TURNS_MS = 90_000;
/** How long a node may take to find the changes that it missed, on a busy machine. */
const CATCH_UP_MS = 60_000;
const PAGE = 100;

export interface InjectedFault {
  fault: FaultName;
  node: TestNode;
}

/** All violations, once the faults are repaired. */
export async function verify(
  users: TestUsers,
  injected: readonly InjectedFault[],
): Promise<Violation[]> {
  await users.cluster.ready();
  const violations = [
    ...users.cluster.nodes.flatMap((node, index) =>
      checkNode(node, node.output().slice(users.logLengths[index]), injected),
    ),
    ...(await waitForTurns(users)),
  ];
  for (const member of users.members) violations.push(...(await checkModel(users, member)));
  const state = await finalState(users);
  violations.push(...check(users.history.operations, state));
  for (const [index, socket] of users.observers.entries()) {
    const node = users.cluster.nodes[index] as TestNode;
    violations.push(...(await checkObserver(users, socket, node, state, injected)));
  }
  return violations;
}

const wrong = (what: string): Violation => ({ what, operations: [] });

/** A node has not crashed, and logs only errors that the injected faults explain. */
function checkNode(
  node: TestNode,
  output: string,
  injected: readonly InjectedFault[],
): Violation[] {
  const explained = injected.flatMap(({ fault }) => faultOf(fault).expectedErrors ?? []);
  const unexplained = output
    .split("\n")
    .filter((line) => /"level":(50|60)/.test(line) || /^error|panic/i.test(line))
    .filter((line) => !explained.some((pattern) => pattern.test(line)));
  return [
    ...(node.hasCrashed() ? [wrong(`${node.name} crashed: ${output.slice(-2000)}`)] : []),
    ...unexplained.slice(0, 5).map((line) => wrong(`${node.name} logged: ${line}`)),
  ];
}

/** Waits until every question is answered and every turn has ended. */
async function waitForTurns(users: TestUsers): Promise<Violation[]> {
  const deadline = Date.now() + TURNS_MS;
  for (;;) {
    const chats = chatsOf(await fetchView(users.owner.person, PAGE));
    const left = checkTurns(users.history.operations, { ...EMPTY, chats });
    if (left.length === 0) return [];
    if (Date.now() > deadline) return left;
    await Bun.sleep(250);
  }
}

const EMPTY: FinalState = { chats: [], receipts: [], usage: [], answer: ANSWER };

/** The model of a client equals what a random node returns. */
async function checkModel({ cluster }: TestUsers, { client, person, random }: TestUser) {
  const node = random.pick(cluster.nodes) as TestNode;
  const deadline = Date.now() + CATCH_UP_MS;
  for (;;) {
    await settled(client);
    const expected = withoutOwnSeq(await fetchView(person.at(node.url), PAGE));
    const actual = withoutOwnSeq(viewOf(client));
    if (Bun.deepEquals(actual, expected)) return [];
    if (Date.now() > deadline) {
      const what = `the model of ${person.username} differs from ${node.name}`;
      return [wrong(`${what}: ${differences(actual, expected).join(", ")}`)];
    }
    await Bun.sleep(100);
  }
}

async function settled(client: Client): Promise<void> {
  await online(client);
  await loadAll(client);
  // Replies and events arrive in order on one socket: all earlier events have arrived.
  await client.getMe();
}

/** Where two values differ, at most five places. */
function differences(actual: unknown, expected: unknown, path = ""): string[] {
  if (Bun.deepEquals(actual, expected)) return [];
  const isPlain = (value: unknown): value is Record<string, unknown> =>
    typeof value === "object" && value !== null;
  const here = `${path}: ${JSON.stringify(actual)} instead of ${JSON.stringify(expected)}`;
  if (!isPlain(actual) || !isPlain(expected)) return [here];
  const keys = new Set([...Object.keys(actual), ...Object.keys(expected)]);
  const found = [...keys].flatMap((key) =>
    differences(actual[key], expected[key], `${path}.${key}`),
  );
  return found.length > 0 ? found.slice(0, 5) : [here];
}

async function finalState({ owner, members }: TestUsers): Promise<FinalState> {
  const { person } = owner;
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

/** Each member's own reactions, from the model of their client, which was compared with the nodes. */
function reactedIn(chat: string, members: readonly TestUser[]): FinalChat["reacted"] {
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

async function checkObserver(
  { counters }: TestUsers,
  socket: Socket,
  node: TestNode,
  state: FinalState,
  injected: readonly InjectedFault[],
): Promise<Violation[]> {
  const isEnded = injected.some((each) => each.node === node && faultOf(each.fault).closesSockets);
  const isDatabaseCrashed = injected.some(({ fault }) => fault === "PostgreSQL stopped");
  const found = () => checkEvents(socket.events, counters, state, isDatabaseCrashed);
  if (isEnded) return socket.closed ? [] : [wrong(`a socket at ${node.name} is still open`)];
  await socket.until(() => socket.closed || found().length === 0, "", CATCH_UP_MS).catch(() => {});
  const closed = socket.closed && [
    wrong(`a socket at ${node.name} was closed: ${socket.closed.code}`),
  ];
  return closed ?? found().map(({ what }) => wrong(`a socket at ${node.name} ${what}`));
}
