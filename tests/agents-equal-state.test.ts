import { afterAll, describe, expect, test } from "bun:test";
import type { Conversation, Message } from "@parley/protocol";
import {
  agentOf,
  answerTo,
  CallFailed,
  liftLimits,
  type Person,
  people,
  replyTo,
  type Socket,
  say,
} from "@parley/testkit/client.ts";
import { Watcher } from "@parley/testkit/model.ts";
import { answers, endsWith, fails, stopsShortAfter } from "@parley/testkit/provider-responders.ts";
import { providersAt, type Responder } from "@parley/testkit/provider-server.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { startSharedProvider } from "@parley/testkit/shared-provider.ts";
import fc from "fast-check";

const sharedProvider = await startSharedProvider();
const server = await startServer({ ...noRates, ...providersAt(sharedProvider.url) });
const everybody = await people(server.url, "ann", "bob", "cat", "dan");
const [ann, bob, cat, dan] = everybody;
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await sharedProvider[Symbol.asyncDispose]();
});

const [claude, gpt] = [agentOf(ann), agentOf(bob, "gpt")] as const;
const keys = { claude: "key-of-ann", gpt: "key-of-bob" };
await ann.call("setAgentKey", { provider: "claude", api_key: keys.claude });
await bob.call("setAgentKey", { provider: "gpt", api_key: keys.gpt });
for (const owner of [ann, bob]) await liftLimits(owner);

interface Place {
  chat: Conversation;
  /** Cat's. */
  socket: Socket;
  /** What everybody holds must be right at this moment, too. */
  check(): Promise<void>;
}

/** Runs something in a group with two agents, and checks that everybody's events told them all of it. */
async function verify(action: (place: Place) => Promise<unknown>): Promise<void> {
  for (const key of Object.values(keys)) sharedProvider.respond(key);
  const chat = await ann.call("startChat", {
    usernames: [bob.username, cat.username, claude],
    title: "Group",
  });
  await bob.call("addGroupAgent", { chat_id: chat.id, agent_username: gpt });
  await say(bob, chat, `hello @${ann.username}`);
  const watchers = await Promise.all(everybody.map((person) => Watcher.start(person)));
  const check = async () => {
    for (const watcher of watchers) await watcher.check();
  };
  try {
    await action({ chat, socket: (watchers[2] as Watcher).socket, check });
    await check();
  } finally {
    for (const watcher of watchers) await watcher[Symbol.asyncDispose]();
    for (const person of everybody) {
      await person.call("leaveChat", { chat_id: chat.id }).catch(() => undefined);
    }
  }
}

/** An answer of ann's agent to cat that has begun, and the call behind it. */
async function begun({ chat, socket }: Place, words = "Hel🦜") {
  const trigger = await say(cat, chat, `@${claude} hello`);
  const call = await sharedProvider.nextCall(keys.claude);
  await call.sendText(words);
  const message = await replyTo(socket, trigger);
  await socket.event("events.messageDelta", ({ id }) => id === message.id);
  return { trigger, call, message };
}

async function answered({ chat, socket }: Place, ...scenes: Responder[]): Promise<Message> {
  sharedProvider.respond(keys.claude, ...scenes);
  return answerTo(socket, await say(cat, chat, `@${claude} hello`));
}

describe("with agents, initial fetch and events equal a fresh fetch", () => {
  const changes: Record<string, (place: Place) => Promise<unknown>> = {
    "after an answer": (place) => answered(place, answers("Hello ", "🦜", " 日本語")),
    "after an answer that mentions people": (place) =>
      answered(place, answers(`@${ann.username} `, `and @${dan.username} @${cat.username}`)),
    "after a turn that failed": (place) => answered(place, fails(401)),
    "after a turn that broke off": (place) => answered(place, stopsShortAfter("Hel🦜")),
    "after an answer that was refused": (place) => answered(place, endsWith("refused")),
    "after an answer without a word": (place) => answered(place, answers()),
    "while an answer waits for its first word": async ({ chat, socket }) => {
      const trigger = await say(cat, chat, `@${claude} hello`);
      await replyTo(socket, trigger);
      await sharedProvider.nextCall(keys.claude);
    },
    "while an answer streams, and when it is whole": async (place) => {
      const { trigger, call } = await begun(place);
      await place.check();
      await call.sendText("lo");
      await call.complete();
      await answerTo(place.socket, trigger);
    },
    "while two agents stream": async (place) => {
      const { chat, socket } = place;
      await begun(place);
      const trigger = await say(bob, chat, `@${gpt} hello`);
      const call = await sharedProvider.nextCall(keys.gpt);
      await call.sendText("日本");
      const { id } = await replyTo(socket, trigger);
      await socket.event("events.messageDelta", (delta) => delta.id === id);
    },
    "after a stop": async (place) => {
      const { message } = await begun(place);
      await cat.call("stopAgentTurn", { message_id: message.id });
    },
    "after the brake": async (place) => {
      await begun(place);
      await say(bob, place.chat, `@${claude} @${gpt} and you?`);
      await cat.call("stopChatAgents", { chat_id: place.chat.id });
    },
    "after a second try": async (place) => {
      const { id } = await answered(place, fails(401), answers("Better."));
      await ann.call("retryAgentTurn", { message_id: id });
      const again = (message: Message) => message.content === "Better.";
      await place.socket.event("events.messageComplete", again);
    },
    "after an answer was deleted in mid-stream": async (place) => {
      const { message } = await begun(place);
      await ann.call("deleteMessages", { chat_id: place.chat.id, message_ids: [message.id] });
    },
    "after an answer was hidden in mid-stream": async (place) => {
      const { trigger, call, message } = await begun(place);
      await cat.call("deleteMessagesForMe", { chat_id: place.chat.id, message_ids: [message.id] });
      await call.sendText(`lo @${cat.username}`);
      await call.complete();
      await answerTo(place.socket, trigger);
    },
    "after reading and reacting in mid-stream": async (place) => {
      const { trigger, call, message } = await begun(place);
      await bob.call("readChat", { chat_id: place.chat.id, seq: message.seq });
      await bob.call("setMessageReaction", { message_id: message.id, emoji: "👍" });
      await place.check();
      await call.sendText(`lo @${bob.username}`);
      await call.complete();
      await answerTo(place.socket, trigger);
    },
    "after the agent's owner left in mid-stream": async (place) => {
      await begun(place);
      await ann.call("leaveChat", { chat_id: place.chat.id });
    },
    "after the agent was taken out in mid-stream": async (place) => {
      await begun(place);
      await ann.call("removeGroupAgent", { chat_id: place.chat.id, agent_username: claude });
    },
    "after somebody came in mid-stream": async (place) => {
      const { trigger, call } = await begun(place);
      await bob.call("addChatMembers", { chat_id: place.chat.id, usernames: [dan.username] });
      await place.check();
      await call.sendText("lo");
      await call.complete();
      await answerTo(place.socket, trigger);
    },
    "after a component's action": async (place) => {
      const { id } = await answered(place, answers('<button action="refresh">Refresh</button>'));
      const action = { chat_id: place.chat.id, message_id: id, action: "trade:buy:AAPL:10" };
      await bob.call("sendComponentAction", action);
    },
    "after a new name of an agent": async (place) => {
      await answered(place, answers("Hello."));
      const display_name = `Sage ${Math.random()}`;
      await ann.call("setAgentProfile", { provider: "claude", display_name });
    },
    "after a new mode of an agent": async ({ chat }) => {
      const input = { chat_id: chat.id, agent_username: claude, always_on: true };
      await ann.call("setGroupAgentMode", input);
    },
  };
  for (const [name, change] of Object.entries(changes)) test(name, () => verify(change));
});

/** Long enough that many deltas are on their way at once. */
const ramble: Responder = async (exchange) => {
  await exchange.head(200);
  await exchange.write(exchange.frames.begin);
  for (let word = 0; word < 60; word++) await exchange.write(exchange.frames.text(`語${word} `));
  await exchange.write(exchange.frames.end("stop"));
  await exchange.end();
};

const scenes: Responder[] = [
  answers("Hello ", "🦜"),
  answers(`@${ann.username} @${bob.username} @${gpt} `, "look"),
  ramble,
  ramble,
  fails(401),
  stopsShortAfter("Hel", "lo"),
  endsWith("refused", "No."),
  answers(),
];

interface Step {
  kind: string;
  actor: number;
  pick: number;
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom(
    ...["ask", "ask", "ask", "ask both", "talk", "stop", "retry", "brake", "delete", "hide"],
    ...["react", "read", "press", "add agent", "remove agent", "mode", "add", "leave", "edit"],
  ),
  actor: fc.nat(3),
  pick: fc.nat(50),
});

/** Does a step as far as its actor may; what the server forbids changes nothing. */
async function perform(chat_id: string, { kind, actor, pick }: Step): Promise<void> {
  const who = everybody[actor] as Person;
  const own = agentOf(who, actor === 0 ? "claude" : "gpt");
  const { items } = await who.call("getChatHistory", { chat_id });
  const theirs = items.filter(({ sender }) => sender.kind === "agent");
  const pool = ["stop", "retry", "press"].includes(kind) ? theirs.slice(-3) : items;
  const message_id = pool[pick % Math.max(pool.length, 1)]?.id ?? Bun.randomUUIDv7();
  const message_ids = [message_id];
  const target = { chat_id, agent_username: own };
  const usernames = [(everybody[pick % 4] as Person).username];
  const steps: Record<string, () => Promise<unknown>> = {
    ask: () => who.call("sendMessage", { chat_id, content: `@${claude} hello` }),
    "ask both": () => who.call("sendMessage", { chat_id, content: `@${gpt}, @${claude}!` }),
    talk: () => who.call("sendMessage", { chat_id, content: "so it goes" }),
    stop: () => who.call("stopAgentTurn", { message_id }),
    retry: () => who.call("retryAgentTurn", { message_id }),
    brake: () => who.call("stopChatAgents", { chat_id }),
    delete: () => who.call("deleteMessages", { chat_id, message_ids }),
    hide: () => who.call("deleteMessagesForMe", { chat_id, message_ids }),
    react: () => who.call("setMessageReaction", { message_id, emoji: "👍" }),
    read: () => who.call("readChat", { chat_id, seq: pick }),
    press: () =>
      who.call("sendComponentAction", { chat_id, message_id, action: "alert:AAPL:gt:200" }),
    "add agent": () => who.call("addGroupAgent", { ...target, always_on: pick % 2 === 0 }),
    "remove agent": () => who.call("removeGroupAgent", target),
    mode: () => who.call("setGroupAgentMode", { ...target, always_on: pick % 2 === 0 }),
    add: () => who.call("addChatMembers", { chat_id, usernames }),
    leave: () => who.call("leaveChat", { chat_id }),
    edit: () => who.call("editMessage", { message_id, content: `@${claude} edited` }),
  };
  await steps[kind]?.();
}

/** What a step that its actor may not do is answered with; anything else is a fault. */
function allowed(error: unknown): void {
  if (!(error instanceof CallFailed) || error.code === "internal") throw error;
}

test("random sequences with answers under way leave every client with the server's state", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 5, maxLength: 25 }),
      fc.array(fc.nat(scenes.length - 1), { minLength: 1, maxLength: 8 }),
      (steps, program) =>
        verify(async ({ chat }) => {
          const played = program.map((index) => scenes[index] as Responder);
          for (const key of Object.values(keys)) sharedProvider.respond(key, ...played);
          for (const each of steps) await perform(chat.id, each).catch(allowed);
          // Whatever still runs or waits ends here: after it nothing more happens.
          for (const person of everybody) {
            await person.call("stopChatAgents", { chat_id: chat.id }).catch(allowed);
          }
          await expectNothingStreams(chat.id);
        }),
    ),
    { numRuns: 60 },
  );
});

async function expectNothingStreams(chat_id: string): Promise<void> {
  for (const person of everybody) {
    const page = await person.call("getChatHistory", { chat_id }).catch(allowed);
    expect(page?.items.filter(({ finalized_at }) => finalized_at === null) ?? []).toEqual([]);
  }
}
