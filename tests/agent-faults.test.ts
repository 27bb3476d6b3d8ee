import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { type Conversation, closeCodes, type Message } from "@parley/protocol";
import {
  agentOf,
  answerTo,
  assembledContent,
  failure,
  groupOf,
  liftLimits,
  type Person,
  replyTo,
  type Socket,
  say,
  signUp,
} from "@parley/testkit/client.ts";
import { databaseOf } from "@parley/testkit/database.ts";
import {
  answers,
  beginAnswer,
  stallsAfter,
  toolCalls,
} from "@parley/testkit/provider-responders.ts";
import { providersAt, type Responder } from "@parley/testkit/provider-server.ts";
import { noRates, startServer, type TestServer } from "@parley/testkit/server.ts";
import { startSharedProvider } from "@parley/testkit/shared-provider.ts";
import { until } from "@parley/testkit/until.ts";

test("an answer is not tried again in a conversation that is closed", async () => {
  await using server = await startServer(noRates);
  const alice = await signUp(server.url, "alice");
  await alice.call("setAgentKey", { provider: "claude", api_key: "sandbox" });
  const chat = await alice.call("startChat", { usernames: [agentOf(alice)] });
  await using reader = await alice.connect();
  const { id: message_id } = await answerTo(reader, await say(alice, chat, "hello"));
  closeConversations(server);
  const refused = await failure(alice.call("retryAgentTurn", { message_id }));
  expect(refused.code).toBe("forbidden");
  expect(refused).toEqual(await failure(say(alice, chat, "again")));
});

/** Closes all conversations, as the deletion of an account does before the account is gone. */
function closeConversations(server: TestServer): void {
  using db = databaseOf(server);
  db.run("UPDATE conversations SET closed_at = 1");
}

test("an agent is told that a search of its own took too long, and answers", async () => {
  const api_key = "key-of-the-owner";
  await using provider = await startSharedProvider();
  await using server = await startServer({ ...noRates, ...providersAt(provider.url) });
  const alice = await signUp(server.url, "alice");
  await alice.call("setAgentKey", { provider: "claude", api_key });
  const chat = await alice.call("startChat", { usernames: [agentOf(alice)] });
  await using reader = await alice.connect();
  const search = { name: "search_messages", input: { query: "needle" } };
  const button = '<button action="tool:search_messages">Search</button>';
  provider.respond(api_key, toolCalls([search]), answers(`Not now. ${button}`), answers("Sorry."));
  // An index that is locked while it is being created would be created again.
  await until(() => canSearch(alice), "the search index exists");
  using _ = lockSearchIndex(server);
  const final = await answerTo(reader, await say(alice, chat, "needle?"));
  expect(final).toMatchObject({ turn: { status: "complete" }, tool_calls: [{ status: "failed" }] });
  expect(JSON.stringify(provider.calls(api_key)[1]?.body.messages)).toContain(
    "The tool failed. Try again later.",
  );
  // A call that a button asks for is made before the model is called.
  await alice.call("sendComponentAction", {
    chat_id: chat.id,
    message_id: final.id,
    action: "tool:search_messages",
    fields: { query: "needle" },
  });
  const { params } = await reader.event(
    "events.messageComplete",
    ({ turn }) => turn?.continues !== undefined,
  );
  expect(params).toMatchObject({ content: "Sorry.", turn: { status: "complete" } });
});

const canSearch = (person: Person): Promise<boolean> =>
  person.call("searchMessages", { query: "needle" }).then(
    () => true,
    () => false,
  );

/** Locks the search index, so that every search exceeds its deadline. */
function lockSearchIndex({ dataDir }: TestServer): Disposable {
  const index = new Database(join(dataDir, "parley-search.db"), { readwrite: true });
  index.run("PRAGMA busy_timeout = 60000");
  index.run("BEGIN IMMEDIATE");
  return { [Symbol.dispose]: () => index.close() };
}

const ROUNDS = 25;
const STREAMS_PER_ROUND = 4;

/** Words of an endless answer. They are numbered, so that a lost or repeated one shows. */
const word = (index: number) => `語${index} 🦜 `;

/** The first words of the endless answer, at least so many bytes. */
const endlessAnswer = (minBytes: number) => {
  let text = "";
  let bytes = 0;
  for (let index = 0; bytes < minBytes; index++) {
    text += word(index);
    bytes += Buffer.byteLength(word(index));
  }
  return text;
};

const answersEndlessly: Responder = async (exchange) => {
  await beginAnswer(exchange);
  for (let index = 0; ; index++) {
    await exchange.write(exchange.frames.text(word(index)));
    await Bun.sleep(1);
  }
};

/** What a message asks of the provider. It is a tag in its text, such as `#endless-3-1`. */
type Behaviour = "endless" | "silent" | "answer";

const respondersByTag: Record<Behaviour, (call: number) => Responder> = {
  endless: () => answersEndlessly,
  // Sends no text in the first call, so the turn is run again after the restart.
  silent: (call) => (call === 1 ? stallsAfter() : answers("Begun ", "again.")),
  answer: () => answers("An ", "answer."),
};

/** A provider that behaves as the last tag in the conversation says, and counts calls by tag. */
async function startTaggedProvider(key: string) {
  const provider = await startSharedProvider();
  const calls = new Map<string, number>();
  const waiters: (() => void)[] = [];
  provider.respond(key, (exchange) => {
    const text = JSON.stringify(exchange.request.body.messages);
    const [tag = "", behaviour = ""] = [...text.matchAll(/#(\w+)-[\w-]+/g)].at(-1) ?? [];
    const call = (calls.get(tag) ?? 0) + 1;
    calls.set(tag, call);
    for (const wake of waiters.splice(0)) wake();
    return respondersByTag[behaviour as Behaviour](call)(exchange);
  });
  return {
    ...provider,
    callsOf: (tag: string) => calls.get(tag) ?? 0,
    async called(tag: string): Promise<void> {
      while (!calls.has(tag)) await new Promise<void>((resolve) => waiters.push(resolve));
    },
  };
}

type TaggedProvider = Awaited<ReturnType<typeof startTaggedProvider>>;

/** A message that triggers a turn. */
interface Question {
  chat: Conversation;
  tag: string;
  trigger: Message;
}

/** A question whose turn runs when the process ends. */
interface RunningQuestion extends Question {
  /** The turn's message. */
  message: Message;
}

interface Round {
  endless: RunningQuestion[];
  silent: RunningQuestion;
  /** Waits behind an endless answer. */
  waiting: Question;
  /** Asked right before the process ends. */
  late: Question;
  /** The text that a client received before the process ended, by message id. */
  received: Map<string, string>;
}

type EndProcess = (server: TestServer, socket: Socket) => Promise<void>;

/** Streams answers, ends the process and checks what the next one does. Returns the cut streams. */
async function runRound(
  server: TestServer,
  provider: TaggedProvider,
  owner: Person,
  index: number,
  endProcess: EndProcess,
): Promise<number> {
  const round = await interruptAnswers(server, provider, owner.at(server.url), index, endProcess);
  await server.restart();
  const person = owner.at(server.url);
  await using socket = await person.connect();
  await expectRecovered(person, socket, provider, round);
  const { endless, silent, waiting, late } = round;
  await expectConsistent(person, [...endless, silent, waiting, late]);
  return endless.length + 1;
}

async function interruptAnswers(
  server: TestServer,
  provider: TaggedProvider,
  owner: Person,
  index: number,
  endProcess: EndProcess,
): Promise<Round> {
  const socket = await owner.connect();
  const newGroup = () => groupOf(owner, { username: agentOf(owner) });
  const ask = async (chat: Conversation, tag: string): Promise<Question> => ({
    chat,
    tag,
    trigger: await say(owner, chat, `@${agentOf(owner)} ${tag}`),
  });
  const askAndRun = async (tag: string): Promise<RunningQuestion> => {
    const question = await ask(await newGroup(), tag);
    const message = await replyTo(socket, question.trigger);
    await provider.called(tag);
    return { ...question, message };
  };
  const endless: RunningQuestion[] = [];
  for (let stream = 0; stream < STREAMS_PER_ROUND; stream++) {
    endless.push(await askAndRun(`#endless-${index}-${stream}`));
  }
  const silent = await askAndRun(`#silent-${index}`);
  const [first] = endless as [RunningQuestion];
  const waiting = await ask(first.chat, `#answer-${index}-waiting`);
  for (const { message } of endless) await receiveDeltas(socket, message, 1 + (index % 7));
  const late = await ask(await newGroup(), `#answer-${index}-late`);
  await endProcess(server, socket);
  const received = new Map(
    endless.map(({ message }) => [
      message.id,
      assembledContent(socket, { id: message.id, content: "" }),
    ]),
  );
  return { endless, silent, waiting, late, received };
}

const receiveDeltas = (socket: Socket, { id }: Message, count: number) =>
  socket.until(
    () =>
      socket.eventsNamed("events.messageDelta").filter(({ params }) => params.id === id).length >=
      count,
    "deltas",
  );

async function expectRecovered(
  person: Person,
  socket: Socket,
  provider: TaggedProvider,
  { endless, silent, waiting, late, received }: Round,
): Promise<void> {
  for (const question of endless) {
    const final = await finalAnswer(person, socket, question);
    expect(final.id).toBe(question.message.id);
    expect(final.turn).toMatchObject({ status: "failed", error: { code: "interrupted" } });
    expect(final.finalized_at).not.toBeNull();
    // The content has all text that was received, and no text that the provider did not send.
    const text = received.get(final.id) ?? "";
    expect(text).not.toBe("");
    expect(final.content).toStartWith(text);
    expect(endlessAnswer(Buffer.byteLength(final.content))).toStartWith(final.content);
    expect(provider.callsOf(question.tag)).toBe(1);
  }
  const again = await finalAnswer(person, socket, silent);
  expect(again).toMatchObject({ id: silent.message.id, content: "Begun again." });
  expect(again.turn).toMatchObject({ status: "complete", error: null });
  expect(provider.callsOf(silent.tag)).toBe(2);

  const next = await finalAnswer(person, socket, waiting);
  expect(next).toMatchObject({ content: "An answer.", turn: { status: "complete" } });
  expect(provider.callsOf(waiting.tag)).toBe(1);

  const { turn, content } = await finalAnswer(person, socket, late);
  if (turn?.status === "complete") expect(content).toBe("An answer.");
  else expect(turn?.error?.code).toBe("interrupted");
  expect("An answer.").toStartWith(content);
  expect(provider.callsOf(late.tag)).toBeWithin(1, 3);
}

/** The finalized answer to a question, from the history or else from the next event. */
async function finalAnswer(
  person: Person,
  socket: Socket,
  { chat, trigger }: Question,
): Promise<Message> {
  const { items } = await person.call("getChatHistory", { chat_id: chat.id });
  const found = items.filter(({ turn }) => turn?.triggered_by === trigger.id);
  expect(found.length).toBeLessThanOrEqual(1);
  return found[0]?.finalized_at ? found[0] : answerTo(socket, trigger);
}

/** Every message is final, every question has one answer, and every change was counted once. */
async function expectConsistent(person: Person, questions: Question[]): Promise<void> {
  for (const chat_id of new Set(questions.map(({ chat }) => chat.id))) {
    const { items } = await person.call("getChatHistory", { chat_id });
    const asked = items.filter(({ turn }) => turn === null).map(({ id }) => id);
    const answered = items.flatMap(({ turn }) => turn?.triggered_by ?? []);
    expect(items.every(({ finalized_at }) => finalized_at !== null)).toBe(true);
    expect(answered.toSorted()).toEqual(asked.toSorted());
    const { seq } = await person.call("getChat", { chat_id });
    expect(seq).toBe(items.length + answered.length);
    expect(await person.call("stopChatAgents", { chat_id })).toEqual({ stopped: 0, cancelled: 0 });
  }
}

/** The interrupted turns left no reservation: a limit slightly above the usage allows a turn. */
async function expectNothingReserved(owner: Person): Promise<void> {
  const { items } = await owner.call("getAgentUsage");
  const used = items.reduce((sum, row) => sum + row.input_tokens + row.output_tokens, 0);
  await owner.call("setAgentLimits", { provider: "claude", daily_tokens: used + 2000 });
  await using socket = await owner.connect();
  const chat = await groupOf(owner, { username: agentOf(owner) });
  const trigger = await say(owner, chat, `@${agentOf(owner)} #answer-last`);
  expect((await answerTo(socket, trigger)).turn).toMatchObject({ status: "complete" });
}

async function runRounds(count: number, endProcess: EndProcess): Promise<number> {
  const api_key = "key-of-the-owner";
  await using provider = await startTaggedProvider(api_key);
  // So many that no endless answer is cut off before the process ends.
  const providers = providersAt(provider.url, { max_output_tokens: 50_000 });
  await using server = await startServer({ ...noRates, ...providers });
  const owner = await signUp(server.url, "owner");
  await owner.call("setAgentKey", { provider: "claude", api_key });
  await liftLimits(owner);
  let cutStreams = 0;
  for (let index = 0; index < count; index++) {
    cutStreams += await runRound(server, provider, owner, index, endProcess);
  }
  await expectNothingReserved(owner.at(server.url));
  return cutStreams;
}

test("kill -9 during answers leaves no message unfinished and loses no received text", async () => {
  const cutStreams = await runRounds(ROUNDS, async (server, socket) => {
    await server.kill();
    await socket.until(() => socket.closed, "the crash");
  });
  expect(cutStreams).toBeGreaterThanOrEqual(100);
});

test("a graceful stop during answers leaves no message unfinished", async () => {
  await runRounds(3, async (server, socket) => {
    expect(await server.stop()).toBe(0);
    await socket.until(() => socket.closed, "close");
    expect(socket.closed?.code).toBe(closeCodes.goingAway);
  });
});
