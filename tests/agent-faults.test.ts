import { expect, test } from "bun:test";
import { type Conversation, closeCodes, type Message } from "@parley/protocol";
import {
  agentOf,
  answerTo,
  groupOf,
  grown,
  liftLimits,
  type Person,
  replyTo,
  type Socket,
  say,
  signUp,
} from "@parley/testkit/client.ts";
import { answers } from "@parley/testkit/provider-responders.ts";
import { providersAt, type Responder } from "@parley/testkit/provider-server.ts";
import { noRates, startServer, type TestServer } from "@parley/testkit/server.ts";
import { startSharedProvider } from "@parley/testkit/shared-provider.ts";

const ROUNDS = 25;
const STREAMS = 4;

/** The words of an answer that never ends: how much of it there is can be told from any part. */
const word = (place: number) => `語${place} 🦜 `;
const beginning = (bytes: number) => {
  let text = "";
  for (let place = 0; Buffer.byteLength(text) < bytes; place++) text += word(place);
  return text;
};

const rambles: Responder = async (exchange) => {
  await exchange.head(200);
  await exchange.write(exchange.frames.begin);
  for (let place = 0; ; place++) {
    await exchange.write(exchange.frames.text(word(place)));
    await Bun.sleep(1);
  }
};
/** Takes the question, and says nothing. */
const silent: Responder = async (exchange) => {
  await exchange.head(200);
  await exchange.write(exchange.frames.begin);
  await exchange.stall();
};

/** A provider that does what it is told by the last words of the conversation, and counts the calls. */
async function startActor() {
  const sharedProvider = await startSharedProvider();
  const calls = new Map<string, number>();
  const waiting: (() => void)[] = [];
  const scenes: Record<string, (call: number) => Responder> = {
    ramble: () => rambles,
    silent: (call) => (call === 1 ? silent : answers("Begun ", "again.")),
    answer: () => answers("An ", "answer."),
  };
  const act: Responder = (exchange) => {
    const text = JSON.stringify(exchange.request.body.messages);
    const [tag = "", kind = ""] = [...text.matchAll(/#(\w+)-[\w-]+/g)].at(-1) ?? [];
    const call = (calls.get(tag) ?? 0) + 1;
    calls.set(tag, call);
    for (const wake of waiting.splice(0)) wake();
    return scenes[kind]?.(call)(exchange);
  };
  return {
    ...sharedProvider,
    act,
    calls: (tag: string) => calls.get(tag) ?? 0,
    async called(tag: string): Promise<void> {
      while (!calls.has(tag)) await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}

interface Asked {
  chat: Conversation;
  tag: string;
  trigger: Message;
  /** What somebody who listened has of the answer. */
  delivered: string;
}

/** The finished answer to a message, whether it is there already or still to come. */
async function ended(person: Person, socket: Socket, { chat, trigger }: Asked): Promise<Message> {
  const { items } = await person.call("getChatHistory", { chat_id: chat.id });
  const mine = items.filter(({ turn }) => turn?.triggered_by === trigger.id);
  expect(mine.length).toBeLessThanOrEqual(1);
  return mine[0]?.finalized_at ? mine[0] : answerTo(socket, trigger);
}

type End = (server: TestServer, sockets: Socket[]) => Promise<void>;

/**
 * Has many answers stream, some not yet begun and some waiting, ends the process in the midst of
 * it, and looks at what the next one makes of them. Returns how many streams were cut.
 */
async function round(
  server: TestServer,
  actor: Awaited<ReturnType<typeof startActor>>,
  owner: Person,
  place: number,
  end: End,
): Promise<number> {
  const before = owner.at(server.url);
  const socket = await before.connect();
  const asked: Record<"ramble" | "silent" | "wait" | "quick", Asked[]> = {
    ramble: [],
    silent: [],
    wait: [],
    quick: [],
  };
  const ask = async (chat: Conversation, tag: string): Promise<Asked> => {
    const trigger = await say(before, chat, `@${agentOf(owner)} ${tag}`);
    return { chat, tag, trigger, delivered: "" };
  };
  const newGroup = () => groupOf(before, { username: agentOf(owner) });
  for (let stream = 0; stream < STREAMS; stream++) {
    asked.ramble.push(await ask(await newGroup(), `#ramble-${place}-${stream}`));
  }
  asked.silent.push(await ask(await newGroup(), `#silent-${place}`));
  const messages = new Map<Asked, Message>();
  for (const each of [...asked.ramble, ...asked.silent]) {
    messages.set(each, await replyTo(socket, each.trigger));
    await actor.called(each.tag);
  }
  const [first] = asked.ramble as [Asked];
  asked.wait.push(await ask(first.chat, `#answer-${place}-waits`));
  for (const each of asked.ramble) {
    const { id } = messages.get(each) as Message;
    const enough = () =>
      socket.eventsNamed("events.messageDelta").filter(({ params }) => params.id === id).length >
      place % 7;
    await socket.until(enough, "deltas");
  }
  asked.quick.push(await ask(await newGroup(), `#answer-${place}-quick`));
  await end(server, [socket]);
  for (const [each, { id }] of messages) each.delivered = grown(socket, { id, content: "" });

  await server.restart();
  const after = owner.at(server.url);
  await using late = await after.connect();
  for (const each of asked.ramble) {
    const final = await ended(after, late, each);
    expect(final.id).toBe(messages.get(each)?.id as string);
    expect(final.turn).toMatchObject({ status: "failed", error: { code: "interrupted" } });
    expect(final.finalized_at).not.toBeNull();
    // Nothing that anybody has seen is lost, and nothing is there that was never said.
    expect(each.delivered).not.toBe("");
    expect(final.content).toStartWith(each.delivered);
    expect(beginning(Buffer.byteLength(final.content))).toStartWith(final.content);
    expect(actor.calls(each.tag)).toBe(1);
  }
  for (const each of asked.silent) {
    const final = await ended(after, late, each);
    expect(final).toMatchObject({ id: messages.get(each)?.id as string, content: "Begun again." });
    expect(final.turn).toMatchObject({ status: "complete", error: null });
    expect(actor.calls(each.tag)).toBe(2);
  }
  for (const each of asked.wait) {
    const final = await ended(after, late, each);
    expect(final).toMatchObject({ content: "An answer.", turn: { status: "complete" } });
    expect(actor.calls(each.tag)).toBe(1);
  }
  for (const each of asked.quick) {
    const { turn, content } = await ended(after, late, each);
    if (turn?.status === "complete") expect(content).toBe("An answer.");
    else expect(turn?.error?.code).toBe("interrupted");
    expect("An answer.").toStartWith(content);
    expect(actor.calls(each.tag)).toBeWithin(1, 3);
  }
  await expectWhole(after, Object.values(asked).flat());
  return asked.ramble.length + asked.silent.length;
}

/** No message is left unfinished, every question has one answer, and no change was counted twice. */
async function expectWhole(person: Person, asked: Asked[]): Promise<void> {
  for (const chat_id of new Set(asked.map(({ chat }) => chat.id))) {
    const { items } = await person.call("getChatHistory", { chat_id });
    const questions = items.filter(({ turn }) => turn === null).map(({ id }) => id);
    const answered = items.flatMap(({ turn }) => turn?.triggered_by ?? []);
    expect(items.every(({ finalized_at }) => finalized_at !== null)).toBe(true);
    expect(answered.toSorted()).toEqual(questions.toSorted());
    const { seq } = await person.call("getChat", { chat_id });
    expect(seq).toBe(items.length + answered.length);
    expect(await person.call("stopChatAgents", { chat_id })).toEqual({ stopped: 0, cancelled: 0 });
  }
}

/** Nothing of what was cut off is still reserved: a budget a little above what was used suffices. */
async function expectNothingReserved(owner: Person): Promise<void> {
  const { items } = await owner.call("getAgentUsage");
  const used = items.reduce((sum, row) => sum + row.input_tokens + row.output_tokens, 0);
  await owner.call("setAgentLimits", { provider: "claude", daily_tokens: used + 2000 });
  await using socket = await owner.connect();
  const chat = await groupOf(owner, { username: agentOf(owner) });
  const trigger = await say(owner, chat, `@${agentOf(owner)} #answer-last`);
  expect((await answerTo(socket, trigger)).turn).toMatchObject({ status: "complete" });
}

async function rounds(times: number, end: End): Promise<number> {
  await using actor = await startActor();
  const providers = providersAt(actor.url, { max_output_tokens: 1000 });
  await using server = await startServer({ ...noRates, ...providers });
  const owner = await signUp(server.url, "owner");
  const api_key = "key-of-the-owner";
  actor.respond(api_key, actor.act);
  await owner.call("setAgentKey", { provider: "claude", api_key });
  await liftLimits(owner);
  let cut = 0;
  for (let place = 0; place < times; place++) cut += await round(server, actor, owner, place, end);
  await expectNothingReserved(owner.at(server.url));
  return cut;
}

test("kill -9 in mid-stream, again and again, leaves no message unfinished", async () => {
  const cut = await rounds(ROUNDS, async (server, sockets) => {
    await server.kill();
    for (const socket of sockets) await socket.until(() => socket.closed, "the crash");
  });
  expect(cut).toBeGreaterThanOrEqual(100);
});

test("an orderly stop in mid-stream leaves no message unfinished either", async () => {
  await rounds(3, async (server, sockets) => {
    expect(await server.stop()).toBe(0);
    for (const socket of sockets) {
      await socket.until(() => socket.closed, "close");
      expect(socket.closed?.code).toBe(closeCodes.goingAway);
    }
  });
});
