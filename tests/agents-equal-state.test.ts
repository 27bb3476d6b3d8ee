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
import {
  answers,
  endsWith,
  fails,
  stopsShortAfter,
  toolCalls,
} from "@parley/testkit/provider-responders.ts";
import { providersAt, type Responder } from "@parley/testkit/provider-server.ts";
import { rounds } from "@parley/testkit/rounds.ts";
import { noRates, onSeveralNodes, startServer } from "@parley/testkit/server.ts";
import { startSharedProvider } from "@parley/testkit/shared-provider.ts";
import { ToolServer } from "@parley/testkit/tool-server.ts";
import fc from "fast-check";

/** A run takes longer on several nodes. */
const RANDOM_RUNS = onSeveralNodes ? 20 : rounds({ few: 20, all: 60 });

const sharedProvider = await startSharedProvider();
const tools = new ToolServer();
const server = await startServer({
  ...noRates,
  ...providersAt(sharedProvider.url),
  PARLEY_PRIVATE_ADDRESSES: "allow",
});
const everybody = await people(server.url, "ann", "bob", "cat", "dan");
const [ann, bob, cat, dan] = everybody;
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await tools[Symbol.asyncDispose]();
  await sharedProvider[Symbol.asyncDispose]();
});

const [claude, gpt] = [agentOf(ann), agentOf(bob, "gpt")] as const;
const keys = { claude: "key-of-ann", gpt: "key-of-bob" };
await ann.call("setAgentKey", { provider: "claude", api_key: keys.claude });
await bob.call("setAgentKey", { provider: "gpt", api_key: keys.gpt });
for (const owner of [ann, bob]) await liftLimits(owner);
const { id: server_id } = await ann.call("addToolServer", { name: "bank", url: tools.url });
await ann.call("setAgentTools", {
  agent_username: claude,
  grants: [{ server_id, tool: "echo", policy: "ask" }],
});

interface WatchedGroup {
  chat: Conversation;
  /** A socket of cat's. */
  socket: Socket;
  /** Compares what every client has with the state of the server. */
  check(): Promise<void>;
}

/** Runs an action in a group with two agents, and checks that every client has the new state. */
async function verify(action: (group: WatchedGroup) => Promise<unknown>): Promise<void> {
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

/** Starts an answer of ann's agent to cat, and waits until cat receives its first text. */
async function startAnswer({ chat, socket }: WatchedGroup, text = "Hel🦜") {
  const trigger = await say(cat, chat, `@${claude} hello`);
  const call = await sharedProvider.nextCall(keys.claude);
  await call.sendText(text);
  const message = await replyTo(socket, trigger);
  await socket.event("events.messageDelta", ({ id }) => id === message.id);
  return { trigger, call, message };
}

async function answered(
  { chat, socket }: WatchedGroup,
  ...responders: Responder[]
): Promise<Message> {
  sharedProvider.respond(keys.claude, ...responders);
  return answerTo(socket, await say(cat, chat, `@${claude} hello`));
}

const usesClock = toolCalls([{ name: "current_time", input: {} }], "Let me see.");
const asksToEcho = toolCalls([{ name: "bank__echo", input: { text: "hi" } }], "May I? ");

describe("with agents, initial fetch and events equal a fresh fetch", () => {
  const changes: Record<string, (group: WatchedGroup) => Promise<unknown>> = {
    "after an answer": (group) => answered(group, answers("Hello ", "🦜", " 日本語")),
    "after an answer that mentions people": (group) =>
      answered(group, answers(`@${ann.username} `, `and @${dan.username} @${cat.username}`)),
    "after a turn that failed": (group) => answered(group, fails(401)),
    "after an answer that breaks off": (group) => answered(group, stopsShortAfter("Hel🦜")),
    "after a refused answer": (group) => answered(group, endsWith("refused")),
    "after an answer without text": (group) => answered(group, answers()),
    "before the first text of an answer": async ({ chat, socket }) => {
      const trigger = await say(cat, chat, `@${claude} hello`);
      await replyTo(socket, trigger);
      await sharedProvider.nextCall(keys.claude);
    },
    "during an answer, and after its end": async (group) => {
      const { trigger, call } = await startAnswer(group);
      await group.check();
      await call.sendText("lo");
      await call.complete();
      await answerTo(group.socket, trigger);
    },
    "during the answers of two agents": async (group) => {
      const { chat, socket } = group;
      await startAnswer(group);
      const trigger = await say(bob, chat, `@${gpt} hello`);
      const call = await sharedProvider.nextCall(keys.gpt);
      await call.sendText("日本");
      const { id } = await replyTo(socket, trigger);
      await socket.event("events.messageDelta", (delta) => delta.id === id);
    },
    "after a stop": async (group) => {
      const { message } = await startAnswer(group);
      await cat.call("stopAgentTurn", { message_id: message.id });
    },
    "after stopChatAgents": async (group) => {
      await startAnswer(group);
      await say(bob, group.chat, `@${claude} @${gpt} and you?`);
      await cat.call("stopChatAgents", { chat_id: group.chat.id });
    },
    "after a retry": async (group) => {
      const { id } = await answered(group, fails(401), answers("Better."));
      await ann.call("retryAgentTurn", { message_id: id });
      const isRetry = (message: Message) => message.content === "Better.";
      await group.socket.event("events.messageComplete", isRetry);
    },
    "after the deletion of an answer while it streams": async (group) => {
      const { message } = await startAnswer(group);
      await ann.call("deleteMessages", { chat_id: group.chat.id, message_ids: [message.id] });
    },
    "after hiding an answer while it streams": async (group) => {
      const { trigger, call, message } = await startAnswer(group);
      await cat.call("deleteMessagesForMe", { chat_id: group.chat.id, message_ids: [message.id] });
      await call.sendText(`lo @${cat.username}`);
      await call.complete();
      await answerTo(group.socket, trigger);
    },
    "after reading and reacting to an answer while it streams": async (group) => {
      const { trigger, call, message } = await startAnswer(group);
      await bob.call("readChat", { chat_id: group.chat.id, seq: message.seq });
      await bob.call("setMessageReaction", { message_id: message.id, emoji: "👍" });
      await group.check();
      await call.sendText(`lo @${bob.username}`);
      await call.complete();
      await answerTo(group.socket, trigger);
    },
    "after the agent's owner leaves while it answers": async (group) => {
      await startAnswer(group);
      await ann.call("leaveChat", { chat_id: group.chat.id });
    },
    "after the removal of the agent while it answers": async (group) => {
      await startAnswer(group);
      await ann.call("removeGroupAgent", { chat_id: group.chat.id, agent_username: claude });
    },
    "after someone joins while an answer streams": async (group) => {
      const { trigger, call } = await startAnswer(group);
      await bob.call("addChatMembers", { chat_id: group.chat.id, usernames: [dan.username] });
      await group.check();
      await call.sendText("lo");
      await call.complete();
      await answerTo(group.socket, trigger);
    },
    "after a component action": async (group) => {
      const { id } = await answered(group, answers('<button action="refresh">Refresh</button>'));
      const action = { chat_id: group.chat.id, message_id: id, action: "trade:buy:AAPL:10" };
      await bob.call("sendComponentAction", action);
    },
    "after an answer with a tool": (group) => answered(group, usesClock, answers("It is late.")),
    "while a call waits, and after it is approved": async (group) => {
      const asked = await answered(group, asksToEcho, answers("It said hi."));
      await group.check();
      const call_id = asked.tool_calls[0]?.id ?? "";
      await ann.call("decideToolCall", { call_id, decision: "approve" });
      const isNext = ({ turn }: Message) => turn?.continues === asked.id;
      await group.socket.event("events.messageComplete", isNext);
    },
    "after a button asked for a tool": async (group) => {
      const { id } = await answered(group, answers('<button action="tool:echo">Echo</button>'));
      const action = { chat_id: group.chat.id, message_id: id, action: "tool:echo" };
      await bob.call("sendComponentAction", action);
    },
    "after the deletion of a message whose call waits": async (group) => {
      const { id } = await answered(group, asksToEcho);
      await ann.call("deleteMessages", { chat_id: group.chat.id, message_ids: [id] });
    },
    "after a new name of an agent": async (group) => {
      await answered(group, answers("Hello."));
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

/** Long enough that many deltas are in flight at once. */
const longAnswer: Responder = async (exchange) => {
  await exchange.head(200);
  await exchange.write(exchange.frames.begin);
  for (let word = 0; word < 60; word++) await exchange.write(exchange.frames.text(`語${word} `));
  await exchange.write(exchange.frames.end("stop"));
  await exchange.end();
};

const RESPONDERS: Responder[] = [
  usesClock,
  asksToEcho,
  answers("Hello ", "🦜"),
  answers(`@${ann.username} @${bob.username} @${gpt} `, "look"),
  longAnswer,
  longAnswer,
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
    ...["ask", "ask", "ask", "ask both", "talk", "stop", "retry", "stop all", "delete", "hide"],
    ...[
      "react",
      "read",
      "press",
      "press tool",
      "decide",
      "decide",
      "add agent",
      "remove agent",
      "mode",
      "add",
      "leave",
      "edit",
    ],
  ),
  actor: fc.nat(3),
  pick: fc.nat(50),
});

/** Performs a step. It throws a `CallFailed` if the server forbids it. */
async function perform(chat_id: string, { kind, actor, pick }: Step): Promise<void> {
  const who = everybody[actor] as Person;
  const own = agentOf(who, actor === 0 ? "claude" : "gpt");
  const { items } = await who.call("getChatHistory", { chat_id });
  const theirs = items.filter(({ sender }) => sender.kind === "agent");
  const pool = ["stop", "retry", "press", "press tool"].includes(kind) ? theirs.slice(-3) : items;
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
    "stop all": () => who.call("stopChatAgents", { chat_id }),
    delete: () => who.call("deleteMessages", { chat_id, message_ids }),
    hide: () => who.call("deleteMessagesForMe", { chat_id, message_ids }),
    react: () => who.call("setMessageReaction", { message_id, emoji: "👍" }),
    read: () => who.call("readChat", { chat_id, seq: pick }),
    press: () =>
      who.call("sendComponentAction", { chat_id, message_id, action: "alert:AAPL:gt:200" }),
    "press tool": () =>
      who.call("sendComponentAction", { chat_id, message_id, action: "tool:echo" }),
    decide: async () => {
      const { items: pending } = await who.call("getPendingToolCalls");
      const call_id = pending[pick % Math.max(pending.length, 1)]?.call.id ?? Bun.randomUUIDv7();
      await who.call("decideToolCall", {
        call_id,
        decision: pick % 3 === 0 ? "reject" : "approve",
      });
    },
    "add agent": () => who.call("addGroupAgent", { ...target, always_on: pick % 2 === 0 }),
    "remove agent": () => who.call("removeGroupAgent", target),
    mode: () => who.call("setGroupAgentMode", { ...target, always_on: pick % 2 === 0 }),
    add: () => who.call("addChatMembers", { chat_id, usernames }),
    leave: () => who.call("leaveChat", { chat_id }),
    edit: () => who.call("editMessage", { message_id, content: `@${claude} edited` }),
  };
  await steps[kind]?.();
}

/** The server may forbid a step, but it must not fail. */
function ignoreForbidden(error: unknown): void {
  if (!(error instanceof CallFailed) || error.code === "internal") throw error;
}

test("random steps during answers leave every client with the state of the server", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 5, maxLength: 25 }),
      fc.array(fc.nat(RESPONDERS.length - 1), { minLength: 1, maxLength: 8 }),
      (steps, picks) =>
        verify(async ({ chat }) => {
          const responders = picks.map((index) => RESPONDERS[index] as Responder);
          for (const key of Object.values(keys)) sharedProvider.respond(key, ...responders);
          for (const each of steps) await perform(chat.id, each).catch(ignoreForbidden);
          // After this no turn runs or waits, so the state does not change any more.
          for (const person of everybody) {
            await person.call("stopChatAgents", { chat_id: chat.id }).catch(ignoreForbidden);
          }
          await expectNothingStreams(chat.id);
        }),
    ),
    { numRuns: RANDOM_RUNS, endOnFailure: true },
  );
});

async function expectNothingStreams(chat_id: string): Promise<void> {
  for (const person of everybody) {
    const page = await person.call("getChatHistory", { chat_id }).catch(ignoreForbidden);
    expect(page?.items.filter(({ finalized_at }) => finalized_at === null) ?? []).toEqual([]);
  }
}
