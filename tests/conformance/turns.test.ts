import { afterAll, describe, expect, test } from "bun:test";
import type { Conversation, EventFrame, Message, TurnReceipt } from "@parley/protocol";
import {
  answers,
  answersByteByByte,
  cutsAfter,
  cutsAfterHead,
  cutsBeforeHead,
  endsWith,
  fails,
  type HeldCall,
  providersAt,
  reportsErrorAfter,
  type Scene,
  sendsGarbageAfter,
  sendsPage,
  spendsAll,
  startStage,
  stopsShortAfter,
} from "../../packages/server/test/support/provider-server.ts";
import {
  agentOf,
  answerTo,
  failure,
  groupOf,
  grown,
  outcome,
  type Person,
  people,
  replyTo,
  type Socket,
  say,
  signUp,
  TIMESTAMP,
  transports,
} from "../support/client.ts";
import { noRates, startServer } from "../support/server.ts";

const stage = await startStage();
const server = await startServer({
  ...noRates,
  ...providersAt(stage.url, { max_output_tokens: 1000, context_tokens: 20_000 }),
});
const [alice, bob, carol, dave] = await people(server.url, "alice", "bob", "carol", "dave");
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await stage[Symbol.asyncDispose]();
});

/** A key by which the provider knows this test's calls. */
async function newKey(person: Person, provider = "claude"): Promise<string> {
  const api_key = `key-${Bun.randomUUIDv7()}`;
  await person.call("setAgentKey", { provider, api_key });
  return api_key;
}

interface Place extends AsyncDisposable {
  chat: Conversation;
  key: string;
  agent: string;
  /** Bob's. */
  reader: Socket;
  ask(words: string, person?: Person): Promise<Message>;
}

/** A group of alice, bob and carol with an agent of alice's, and bob listening. Alice is its admin. */
async function place(options: { provider?: string; always_on?: boolean } = {}): Promise<Place> {
  const { provider = "claude", always_on = false } = options;
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

/** Asks, and brings the answer so far that its first words have been heard. */
async function begun({ ask, key, reader }: Place, words = "Hel", person = bob) {
  const trigger = await ask("hello", person);
  const call = await stage.next(key);
  await call.says(words);
  const message = await replyTo(reader, trigger);
  await reader.event("events.messageDelta", ({ id }) => id === message.id);
  return { trigger, call, message };
}

/** Says the rest of an answer and ends it. */
async function finish(call: HeldCall, ...words: string[]) {
  await call.says(...words);
  await call.ends();
}

/** Nothing of the conversation's agents runs or waits: turns are recorded with their trigger. */
const expectQuiet = async (chat: { id: string }) =>
  expect(await carol.call("stopChatAgents", { chat_id: chat.id })).toEqual({
    stopped: 0,
    cancelled: 0,
  });

interface ModelInput {
  model: string;
  max_tokens: number;
  system: string;
  messages: { role: string; content: string }[];
}
const bodyOf = ({ request }: HeldCall) => request.body as unknown as ModelInput;
const lastSaid = (call: HeldCall) => bodyOf(call).messages.at(-1)?.content ?? "";

const contentOf = async (message_id: string) =>
  (await alice.call("getMessage", { message_id })).content;

describe.each(["claude", "gpt"])("a turn of %s on the wire", (provider) => {
  test("is typing, the empty message, deltas, the whole message, and no more typing", async () => {
    await using here = await place({ provider });
    const { chat, key, agent, reader, ask } = here;
    await using own = await alice.connect();
    await using outsider = await dave.connect();
    stage.play(key, answers("Hel", "lo ", "🦜"));
    const trigger = await ask("hello");
    const final = await answerTo(reader, trigger);
    const actor = { username: agent, kind: "agent", display_name: final.sender.display_name };
    const typing = (is_typing: boolean) => ({
      method: "events.typing",
      params: { conversation_id: chat.id, actor, is_typing },
    });
    const placeholder = {
      id: final.id,
      conversation_id: chat.id,
      seq: trigger.seq + 1,
      version: trigger.seq + 1,
      sender: actor,
      content: "",
      client_msg_id: null,
      reply_to_id: null,
      created_at: expect.stringMatching(TIMESTAMP),
      edited_at: null,
      finalized_at: null,
      reactions: [],
      mentions: [],
      turn: {
        status: "streaming",
        triggered_by: trigger.id,
        model: provider === "claude" ? "model-a" : "model-o",
        error: null,
        usage: null,
      },
    };
    for (const socket of [reader, own]) {
      await socket.event("events.typing", ({ is_typing }) => !is_typing);
      const [, first, ...events] = socket.events as EventFrame[];
      expect(first).toMatchObject({ method: "events.messageNew", params: { id: trigger.id } });
      const deltas = events.filter(({ method }) => method === "events.messageDelta");
      expect(deltas.length).toBeGreaterThan(0);
      expect(events as unknown[]).toEqual([
        typing(true),
        {
          method: "events.messageNew",
          params: placeholder,
          at: { conversation_id: chat.id, seq: trigger.seq + 1 },
        },
        ...deltas,
        {
          method: "events.messageComplete",
          params: {
            ...placeholder,
            version: trigger.seq + 2,
            content: "Hello 🦜",
            finalized_at: expect.stringMatching(TIMESTAMP),
            turn: {
              ...placeholder.turn,
              status: "complete",
              usage: { input_tokens: 25, output_tokens: 15 },
            },
          },
          at: { conversation_id: chat.id, seq: trigger.seq + 2 },
        },
        typing(false),
      ]);
    }
    expect(await bob.call("getMessage", { message_id: final.id })).toEqual(final);
    await outsider.settled();
    expect(outsider.events).toHaveLength(1);
  });

  test("has offsets that count bytes, and deltas that make up the content byte for byte", async () => {
    await using here = await place({ provider });
    const { key, reader, ask } = here;
    const texts = [
      "naïve ",
      "🦜",
      "日本",
      "語\n",
      "👩‍👩‍👧‍👦 ",
      "e\u0301 ",
      "\u{1F3F3}\uFE0F",
      "𝒳!",
    ];
    const split = ["a\ud83e", "\udd9cb"];
    for (const [scene, whole] of [
      [answers(...texts), texts.join("")],
      [answersByteByByte(...texts), texts.join("")],
      [answers(...split), "a🦜b"],
    ] as const) {
      stage.play(key, scene);
      const final = await answerTo(reader, await ask("go"));
      expect(final.content).toBe(whole);
      expect(grown(reader, { id: final.id, content: "" })).toBe(whole);
      const deltas = reader
        .eventsNamed("events.messageDelta")
        .filter(({ params }) => params.id === final.id);
      expect(deltas.every(({ params }) => params.delta.isWellFormed())).toBe(true);
      expect(deltas.at(-1)?.params.offset).toBe(Buffer.byteLength(whole));
    }
  });
});

describe("a reader who comes late", () => {
  const ways: Record<string, (person: Person, chat: string, id: string) => Promise<Message>> = {
    getMessage: (person, _, message_id) => person.call("getMessage", { message_id }),
    getChatHistory: async (person, chat_id, id) => {
      const { items } = await person.call("getChatHistory", { chat_id });
      return items.find((each) => each.id === id) as Message;
    },
    getUpdates: async (person, chat_id, id) => {
      const updates = await person.call("getUpdates", { chat_id, since_seq: 0 });
      if (!("messages" in updates)) throw new Error("updates of one conversation were asked for");
      return updates.messages.find((each) => each.id === id) as Message;
    },
    getChats: async (person, chat_id) => {
      const { items } = await person.call("getChats");
      return items.find(({ id }) => id === chat_id)?.last_message as Message;
    },
  };

  for (const [way, look] of Object.entries(ways)) {
    test(`gets the part so far by ${way}, and then every following byte once`, async () => {
      await using here = await place();
      const { trigger, call, message } = await begun(here, "Hel");
      await using late = await carol.connect();
      const part = await look(carol, here.chat.id, message.id);
      expect(part).toEqual({ ...message, content: "Hel" });
      await finish(call, "lo 🦜", " there");
      const final = await answerTo(late, trigger);
      expect(final.content).toBe("Hello 🦜 there");
      expect(grown(late, part)).toBe(final.content);
    });
  }

  test("gets all of it whenever they come, and however many they are", async () => {
    await using here = await place();
    const { reader } = here;
    const { trigger, call, message } = await begun(here, "0 ");
    const sockets = await Promise.all(Array.from({ length: 10 }, () => carol.connect()));
    let saying = true;
    const speech = (async () => {
      for (let word = 1; word < 400; word++) await call.says(`${word} 語 `);
      saying = false;
      await call.ends();
    })();
    const parts: { socket: Socket; part: Message }[] = [];
    while (saying) {
      const looks = sockets.map(async (socket) => {
        const part = await carol.call("getMessage", { message_id: message.id });
        parts.push({ socket, part });
      });
      await Promise.all(looks);
    }
    await speech;
    const final = await answerTo(reader, trigger);
    await Promise.all(sockets.map((socket) => answerTo(socket, trigger)));
    for (const { socket, part } of parts) expect(grown(socket, part)).toBe(final.content);
    for (const socket of sockets) await socket.close();
  });
});

describe("who answers what", () => {
  test("in a direct conversation every message of its owner's", async () => {
    const key = await newKey(alice);
    stage.play(key, answers("Hello."));
    await using socket = await alice.connect();
    const chat = await alice.call("startChat", { usernames: [agentOf(alice)] });
    for (const words of ["hello", "`@nobody`"]) {
      const answer = await answerTo(socket, await say(alice, chat, words));
      expect(answer).toMatchObject({ content: "Hello.", sender: { username: agentOf(alice) } });
    }
  });

  test("in a group a mention, in any case and not in code", async () => {
    await using here = await place();
    const { chat, key, agent, reader } = here;
    stage.play(key, answers("Yes?"));
    const mention = `hello, (@${agent.toUpperCase()})!`;
    expect(await answerTo(reader, await say(bob, chat, mention))).toMatchObject({
      content: "Yes?",
    });
    const others = [
      ...["hello", agent, `@${alice.username}`, `\`@${agent}\``, `mail@${agent}`],
      ...[`\`\`\`\n@${agent}\n\`\`\``, `@${agentOf(alice, "gpt")}`, `@${agent}x`],
    ];
    for (const words of others) {
      await say(bob, chat, words);
      await expectQuiet(chat);
    }
    expect(stage.calls(key)).toHaveLength(1);
  });

  test("in a group everything people say, where it is always on", async () => {
    await using here = await place({ always_on: true });
    const { chat, key, reader } = here;
    stage.play(key, answers("Yes?"));
    for (const person of [alice, bob, carol]) {
      const answer = await answerTo(reader, await say(person, chat, "hello"));
      expect(answer.content).toBe("Yes?");
    }
  });

  test("a mode that was changed applies from the next message", async () => {
    await using here = await place();
    const { chat, key, agent, reader } = here;
    stage.play(key, answers("Yes?"));
    const setMode = (always_on: boolean) =>
      alice.call("setGroupAgentMode", { chat_id: chat.id, agent_username: agent, always_on });
    await say(bob, chat, "before");
    await setMode(true);
    await expectQuiet(chat);
    await answerTo(reader, await say(bob, chat, "now"));
    await setMode(false);
    await say(bob, chat, "after");
    await expectQuiet(chat);
  });

  test.each(transports)("a message sent again over %s starts nothing again", async (transport) => {
    await using here = await place();
    const { chat, key, agent, reader } = here;
    stage.play(key, answers("Once."));
    await using caller = await bob.via(transport);
    const input = { chat_id: chat.id, content: `@${agent} hello`, client_msg_id: "same" };
    const trigger = await caller.call("sendMessage", input);
    expect(await caller.call("sendMessage", input)).toEqual(trigger);
    await answerTo(reader, trigger);
    expect(await caller.call("sendMessage", input)).toEqual(trigger);
    await expectQuiet(chat);
    expect(stage.calls(key)).toHaveLength(1);
  });

  test("a mention that an edit brings starts nothing", async () => {
    await using here = await place();
    const { chat, agent } = here;
    const { id } = await say(bob, chat, "hello");
    const edited = await bob.call("editMessage", { message_id: id, content: `@${agent} hello` });
    expect(edited.mentions).toEqual([agent]);
    await expectQuiet(chat);
  });

  test("what agents write starts no agent, not even one that is always on", async () => {
    await using here = await place();
    const { chat, reader, agent } = here;
    const other = agentOf(bob, "gpt");
    const { trigger, call } = await begun(here, "Hm. ");
    await bob.call("addGroupAgent", { chat_id: chat.id, agent_username: other, always_on: true });
    await finish(call, `@${other}, and @${agent}, what do you think?`);
    expect((await answerTo(reader, trigger)).mentions).toEqual([other, agent]);
    await expectQuiet(chat);
  });

  test("an agent that came after a message does not answer it", async () => {
    const chat = await groupOf(alice, carol);
    await say(alice, chat, `@${agentOf(alice)} hello`);
    await alice.call("addGroupAgent", {
      chat_id: chat.id,
      agent_username: agentOf(alice),
      always_on: true,
    });
    await expectQuiet(chat);
  });
});

describe("turns of one agent", () => {
  test("come one at a time in a conversation, and one answers all that waited", async () => {
    await using here = await place();
    const { chat, key, reader, ask } = here;
    const { trigger, call } = await begun(here);
    const waiting: Message[] = [];
    for (const words of ["one", "two", "three"]) waiting.push(await ask(words));
    await say(carol, chat, "by the way");
    expect(stage.calls(key)).toHaveLength(1);
    await finish(call, "lo");
    await answerTo(reader, trigger);
    const next = await stage.next(key);
    for (const words of ["Hel", "one", "two", "three", "by the way"]) {
      expect(JSON.stringify(bodyOf(next).messages)).toContain(words);
    }
    await finish(next, "To all three.");
    const answer = await answerTo(reader, waiting[2] as Message);
    expect(answer.content).toBe("To all three.");
    await expectQuiet(chat);
    expect(stage.calls(key)).toHaveLength(2);
    const { items } = await bob.call("getChatHistory", { chat_id: chat.id });
    expect(items.filter(({ turn }) => turn !== null)).toHaveLength(2);
  });

  test("run side by side in different conversations", async () => {
    await using one = await place();
    const other = await groupOf(alice, bob, { username: one.agent });
    const first = await begun(one);
    const trigger = await say(bob, other, `@${one.agent} hello`);
    const call = await stage.next(one.key);
    await finish(call, "Second.");
    expect(await answerTo(one.reader, trigger)).toMatchObject({ content: "Second." });
    await finish(first.call, "lo");
    expect(await answerTo(one.reader, first.trigger)).toMatchObject({ content: "Hello" });
  });

  test("run side by side with those of other agents", async () => {
    await using here = await place();
    const { chat, reader, agent, key } = here;
    const others = [agentOf(alice, "gpt"), agentOf(bob)];
    const keys = [key, await newKey(alice, "gpt"), await newKey(bob)];
    await alice.call("addGroupAgent", { chat_id: chat.id, agent_username: others[0] as string });
    await bob.call("addGroupAgent", { chat_id: chat.id, agent_username: others[1] as string });
    const agents = [agent, ...others];
    const trigger = await say(carol, chat, agents.map((each) => `@${each}`).join(" "));
    const calls = await Promise.all(keys.map((each) => stage.next(each)));
    for (const [index, call] of calls.entries()) await call.says(`I am ${index}`);
    for (const [index, call] of calls.entries()) {
      await finish(call, ".");
      const answer = await answerTo(reader, trigger, agents[index]);
      expect(answer.content).toBe(`I am ${index}.`);
    }
    const placeholders = await Promise.all(agents.map((each) => replyTo(reader, trigger, each)));
    expect(placeholders.map(({ seq }) => seq)).toEqual([1, 2, 3].map((n) => trigger.seq + n));
  });
});

describe("what the model is sent", () => {
  test("is who it is, its owner's instructions, and what its owner can see", async () => {
    await using here = await place();
    const { chat, key, agent, reader, ask } = here;
    await alice.call("setAgentProfile", {
      provider: "claude",
      model: "model-of-choice",
      display_name: "Sage",
      instructions: "Speak in riddles.",
    });
    const [kept, gone, hidden, bobsOnly] = [
      await say(alice, chat, "this is kept"),
      await say(bob, chat, "this is deleted"),
      await say(carol, chat, "this is hidden by the owner"),
      await say(carol, chat, "this is hidden by somebody else"),
    ];
    await bob.call("deleteMessages", { chat_id: chat.id, message_ids: [gone.id] });
    await alice.call("deleteMessagesForMe", { chat_id: chat.id, message_ids: [hidden.id] });
    await bob.call("deleteMessagesForMe", { chat_id: chat.id, message_ids: [bobsOnly.id] });
    const trigger = await ask("well?");
    const call = await stage.next(key);
    await alice.call("setAgentProfile", {
      provider: "claude",
      model: null,
      display_name: `${alice.username}'s Claude`,
      instructions: null,
    });
    const { system, messages, model, max_tokens } = bodyOf(call);
    expect({ model, max_tokens }).toEqual({ model: "model-of-choice", max_tokens: 1000 });
    expect(system).toStartWith(`You are Sage (@${agent}), an AI agent that belongs to `);
    for (const person of [alice, bob, carol]) expect(system).toContain(`(@${person.username})`);
    expect(system).toEndWith("Instructions of your owner:\nSpeak in riddles.");
    expect(messages).toEqual([
      {
        role: "user",
        content: [
          `${alice.username}: this is kept`,
          `${carol.username}: this is hidden by somebody else`,
          `${bob.username}: @${agent} well?`,
        ].join("\n\n"),
      },
    ]);
    await finish(call, "A riddle.");
    const answer = await answerTo(reader, trigger);
    expect(answer).toMatchObject({
      sender: { display_name: `${alice.username}'s Claude` },
      turn: { model: "model-of-choice" },
    });
    const placeholder = await replyTo(reader, trigger);
    expect(placeholder.sender.display_name).toBe("Sage");
    const { context_ids } = await carol.call("getTurn", { message_id: answer.id });
    expect(context_ids).toEqual([kept.id, bobsOnly.id, trigger.id]);
  });

  test("is what was said before, the agent's own words on its side and no failure among them", async () => {
    await using here = await place();
    const { key, agent, reader, ask } = here;
    stage.play(key, fails(401), answers("First."), fails(400));
    for (const words of ["one", "two", "three"]) await answerTo(reader, await ask(words));
    stage.play(key);
    await ask("four");
    const { messages } = bodyOf(await stage.next(key));
    const line = (words: string) => `${bob.username}: @${agent} ${words}`;
    expect(messages).toEqual([
      { role: "user", content: `${line("one")}\n\n${line("two")}` },
      { role: "assistant", content: "First." },
      { role: "user", content: `${line("three")}\n\n${line("four")}` },
    ]);
  });
});

describe.each(transports)("stopAgentTurn over %s", (transport) => {
  test("finishes the message with what it has, and the provider is left alone", async () => {
    await using here = await place();
    const { chat, reader, agent } = here;
    const { trigger, call, message } = await begun(here, "Hel");
    await using caller = await alice.via(transport);
    expect(await caller.call("stopAgentTurn", { message_id: message.id })).toBeUndefined();
    await call.request.closed;
    const final = await answerTo(reader, trigger);
    expect(final).toMatchObject({
      id: message.id,
      content: "Hel",
      finalized_at: expect.stringMatching(TIMESTAMP),
      turn: { status: "stopped", error: null },
    });
    await reader.event("events.typing", ({ is_typing }) => !is_typing);
    expect(grown(reader, message)).toBe("Hel");
    expect(reader.events.at(-1)).toMatchObject({
      method: "events.typing",
      params: { actor: { username: agent }, is_typing: false },
    });
    await expectQuiet(chat);
  });

  test("before the first word leaves an empty message, which is final", async () => {
    await using here = await place();
    const { key, reader, ask } = here;
    const trigger = await ask("hello");
    const call = await stage.next(key);
    const { id } = await replyTo(reader, trigger);
    await using caller = await bob.via(transport);
    await caller.call("stopAgentTurn", { message_id: id });
    expect(await answerTo(reader, trigger)).toMatchObject({
      id,
      content: "",
      turn: { status: "stopped" },
    });
    await call.request.closed;
  });

  test("after the end is a conflict, however it ended", async () => {
    await using here = await place();
    const { key, reader, ask } = here;
    stage.play(key, answers("Done."), fails(401));
    await using caller = await alice.via(transport);
    const complete = await answerTo(reader, await ask("one"));
    const failed = await answerTo(reader, await ask("two"));
    stage.play(key);
    const { trigger, message } = await begun(here);
    await caller.call("stopAgentTurn", { message_id: message.id });
    const stopped = await answerTo(reader, trigger);
    for (const ended of [complete, failed, stopped]) {
      const refused = await failure(caller.call("stopAgentTurn", { message_id: ended.id }));
      expect(refused.code).toBe("conflict");
      expect(await alice.call("getMessage", { message_id: ended.id })).toEqual(ended);
    }
  });

  test("is for the agent's owner, whoever asked, and the group's admin", async () => {
    await using here = await place();
    const { reader, chat } = here;
    const owned = await groupOf(dave, alice, bob, carol);
    await alice.call("addGroupAgent", { chat_id: owned.id, agent_username: here.agent });
    for (const who of [alice, bob, dave]) {
      const trigger = await say(bob, owned, `@${here.agent} hello`);
      await stage.next(here.key);
      const { id } = await replyTo(reader, trigger);
      await using caller = await who.via(transport);
      await using stranger = await carol.via(transport);
      const refused = stranger.call("stopAgentTurn", { message_id: id });
      expect((await failure(refused)).code).toBe("forbidden");
      await caller.call("stopAgentTurn", { message_id: id });
      expect((await answerTo(reader, trigger)).turn?.status).toBe("stopped");
    }
    await expectQuiet(chat);
  });

  test("knows nothing of what is not an agent's turn, and tells no stranger of one", async () => {
    await using here = await place();
    const { chat } = here;
    const { message } = await begun(here);
    await using caller = await alice.via(transport);
    await using stranger = await dave.via(transport);
    for (const name of ["stopAgentTurn", "retryAgentTurn", "getTurn"] as const) {
      const { id } = await say(alice, chat, "a person's");
      expect(await outcome(caller.call(name, { message_id: id }))).toBe("not_found");
      const missing = { message_id: Bun.randomUUIDv7() };
      expect(await outcome(caller.call(name, missing))).toBe("not_found");
      expect(await outcome(caller.call(name, { message_id: "x" }))).toBe("bad_request");
      expect(await outcome(stranger.call(name, { message_id: message.id }))).toBe("forbidden");
    }
  });
});

describe.each(transports)("retryAgentTurn over %s", (transport) => {
  test("has the same message answered again, in a new one, without the old answer", async () => {
    await using here = await place();
    const { chat, key, reader, ask, agent } = here;
    stage.play(key, fails(401), answers("Better."), answers("Best."));
    const trigger = await ask("hello");
    const failed = await answerTo(reader, trigger);
    await say(carol, chat, "meanwhile");
    await using caller = await bob.via(transport);
    let last = failed;
    for (const content of ["Better.", "Best."]) {
      expect(await caller.call("retryAgentTurn", { message_id: last.id })).toBeUndefined();
      const known = last.id;
      const { params } = await reader.event(
        "events.messageComplete",
        ({ id, seq }) => id !== known && seq > last.seq,
      );
      expect(params).toMatchObject({
        content,
        turn: { status: "complete", triggered_by: trigger.id },
      });
      last = params;
    }
    expect(await alice.call("getMessage", { message_id: failed.id })).toEqual(failed);
    for (const { body } of stage.calls(key).slice(1)) {
      expect((body as unknown as ModelInput).messages).toEqual([
        { role: "user", content: `${bob.username}: @${agent} hello` },
      ]);
    }
  });

  test("while the turn runs is a conflict, and so is it when the agent has gone", async () => {
    await using here = await place();
    const { chat, agent } = here;
    const { trigger, call, message } = await begun(here);
    await using caller = await alice.via(transport);
    const input = { message_id: message.id };
    expect(await outcome(caller.call("retryAgentTurn", input))).toBe("conflict");
    await finish(call, "lo");
    await answerTo(here.reader, trigger);
    await alice.call("removeGroupAgent", { chat_id: chat.id, agent_username: agent });
    expect(await outcome(caller.call("retryAgentTurn", input))).toBe("conflict");
    await expectQuiet(chat);
  });

  test("of an answer to a message that was deleted finds nothing to answer", async () => {
    await using here = await place();
    const { chat, key, reader, ask } = here;
    stage.play(key, answers("Yes?"));
    const trigger = await ask("hello");
    const { id } = await answerTo(reader, trigger);
    await bob.call("deleteMessages", { chat_id: chat.id, message_ids: [trigger.id] });
    await using caller = await alice.via(transport);
    expect(await outcome(caller.call("retryAgentTurn", { message_id: id }))).toBe("not_found");
    await expectQuiet(chat);
  });

  test("is for the agent's owner, whoever asked, and the group's admin", async () => {
    await using here = await place();
    const { key, reader } = here;
    const chat = await groupOf(dave, alice, bob, carol);
    await alice.call("addGroupAgent", { chat_id: chat.id, agent_username: here.agent });
    stage.play(key, answers("Yes?"));
    const { id } = await answerTo(reader, await say(bob, chat, `@${here.agent} hello`));
    await using stranger = await carol.via(transport);
    const refused = stranger.call("retryAgentTurn", { message_id: id });
    expect((await failure(refused)).code).toBe("forbidden");
    for (const [place, who] of [alice, bob, dave].entries()) {
      await using caller = await who.via(transport);
      await caller.call("retryAgentTurn", { message_id: id });
      const answersSeen = () => reader.eventsNamed("events.messageComplete").length === place + 2;
      await reader.until(answersSeen, "another answer");
    }
  });
});

describe.each(transports)("stopChatAgents over %s", (transport) => {
  test("ends what runs, drops what waits, and says how many", async () => {
    await using here = await place();
    const { chat, key, reader, ask, agent } = here;
    const gpt = agentOf(alice, "gpt");
    const other = await newKey(alice, "gpt");
    await alice.call("addGroupAgent", { chat_id: chat.id, agent_username: gpt, always_on: true });
    const trigger = await ask("hello");
    const calls = [await stage.next(key), await stage.next(other)];
    await calls[0]?.says("Hel");
    const message = await replyTo(reader, trigger, agent);
    await reader.event("events.messageDelta", ({ id }) => id === message.id);
    await ask("one");
    await ask("two");
    await using caller = await carol.via(transport);
    expect(await caller.call("stopChatAgents", { chat_id: chat.id })).toEqual({
      stopped: 2,
      cancelled: 2,
    });
    for (const call of calls) await call.request.closed;
    expect(await answerTo(reader, trigger, agent)).toMatchObject({
      content: "Hel",
      turn: { status: "stopped" },
    });
    expect(await answerTo(reader, trigger, gpt)).toMatchObject({
      content: "",
      turn: { status: "stopped" },
    });
    expect(await caller.call("stopChatAgents", { chat_id: chat.id })).toEqual({
      stopped: 0,
      cancelled: 0,
    });
    const { items } = await carol.call("getChatHistory", { chat_id: chat.id });
    expect(items.filter(({ turn }) => turn !== null)).toHaveLength(2);
    stage.play(key, answers("Again."));
    stage.play(other, answers("Me too."));
    expect((await answerTo(reader, await ask("again"), agent)).content).toBe("Again.");
  });

  test("leaves other conversations alone", async () => {
    await using here = await place();
    const { trigger, call } = await begun(here);
    const elsewhere = await groupOf(alice, carol, { username: here.agent });
    await using caller = await alice.via(transport);
    await caller.call("stopChatAgents", { chat_id: elsewhere.id });
    await finish(call, "lo");
    expect(await answerTo(here.reader, trigger)).toMatchObject({
      content: "Hello",
      turn: { status: "complete" },
    });
  });
});

describe("in mid-stream", () => {
  /** What the others see of a message that was ended early with what it had. */
  async function expectStopped(reader: Socket, trigger: Message, call: HeldCall) {
    await call.request.closed;
    const final = await answerTo(reader, trigger);
    expect(final).toMatchObject({ content: "Hel", turn: { status: "stopped", error: null } });
    expect(final.finalized_at).toMatch(TIMESTAMP);
    await reader.event("events.typing", ({ is_typing }) => !is_typing);
    return final;
  }

  test("a deleted answer is stopped first, and then gone", async () => {
    await using here = await place();
    const { chat, key, reader, ask } = here;
    const { trigger, call, message } = await begun(here);
    await ask("and then?");
    await alice.call("deleteMessages", { chat_id: chat.id, message_ids: [message.id] });
    const final = await expectStopped(reader, trigger, call);
    const deleted = await reader.event("events.messageDeleted");
    expect(deleted.params).toEqual({ conversation_id: chat.id, ids: [message.id] });
    expect(deleted.at?.seq).toBe(final.version + 1);
    const gone = bob.call("getMessage", { message_id: message.id });
    expect((await failure(gone)).code).toBe("not_found");
    // What waited goes on.
    const next = await stage.next(key);
    expect(lastSaid(next)).toContain("and then?");
    expect(JSON.stringify(bodyOf(next))).not.toContain("Hel");
  });

  test("an answer that its reader hides goes on for the others", async () => {
    await using here = await place();
    const { chat, reader } = here;
    const { trigger, call, message } = await begun(here);
    await carol.call("deleteMessagesForMe", { chat_id: chat.id, message_ids: [message.id] });
    await finish(call, "lo");
    expect((await answerTo(reader, trigger)).content).toBe("Hello");
    const hidden = carol.call("getMessage", { message_id: message.id });
    expect((await failure(hidden)).code).toBe("not_found");
  });

  test("an owner who leaves takes the agent along, with what it has said", async () => {
    await using here = await place();
    const { chat, reader, ask } = here;
    const { trigger, call } = await begun(here);
    await ask("and then?");
    await alice.call("leaveChat", { chat_id: chat.id });
    await expectStopped(reader, trigger, call);
    const updated = await reader.event("events.conversationUpdated");
    expect(updated.params.participants).toEqual([bob.account, carol.account]);
    await expectQuiet(chat);
    expect(stage.calls(here.key)).toHaveLength(1);
  });

  test("an agent that is taken out stops, with what it has said", async () => {
    for (const how of ["by its owner", "by the admin"]) {
      await using here = await place();
      const { chat, agent, reader } = here;
      const { trigger, call } = await begun(here);
      if (how === "by its owner") {
        await alice.call("removeGroupAgent", { chat_id: chat.id, agent_username: agent });
      } else {
        await alice.call("removeChatMember", { chat_id: chat.id, username: agent });
      }
      await expectStopped(reader, trigger, call);
      await expectQuiet(chat);
    }
  });

  test("an owner who is removed loses the agent there, too", async () => {
    await using here = await place();
    const chat = await groupOf(carol, alice, bob);
    await alice.call("addGroupAgent", { chat_id: chat.id, agent_username: here.agent });
    const trigger = await say(bob, chat, `@${here.agent} hello`);
    const call = await stage.next(here.key);
    await call.says("Hel");
    await here.reader.event("events.messageDelta");
    await carol.call("removeChatMember", { chat_id: chat.id, username: alice.username });
    await expectStopped(here.reader, trigger, call);
  });

  test("somebody who asked and left gets their answer read by the others", async () => {
    await using here = await place();
    const { chat, reader } = here;
    const { trigger, call } = await begun(here, "Hel", carol);
    await carol.call("leaveChat", { chat_id: chat.id });
    await finish(call, "lo");
    expect(await answerTo(reader, trigger)).toMatchObject({
      content: "Hello",
      turn: { status: "complete" },
    });
  });

  test("a question that is deleted is still answered, as it was asked", async () => {
    await using here = await place();
    const { chat, reader } = here;
    const { trigger, call } = await begun(here);
    await bob.call("deleteMessages", { chat_id: chat.id, message_ids: [trigger.id] });
    await finish(call, "lo");
    expect((await answerTo(reader, trigger)).content).toBe("Hello");
  });

  test("a key that is removed serves the answer to its end, and none after it", async () => {
    await using here = await place();
    const { reader, ask, key } = here;
    const { trigger, call } = await begun(here);
    const waiting = await ask("and then?");
    await alice.call("removeAgentKey", { provider: "claude" });
    await finish(call, "lo");
    expect(await answerTo(reader, trigger)).toMatchObject({
      content: "Hello",
      turn: { status: "complete" },
    });
    const next = await answerTo(reader, waiting);
    expect(next.turn).toMatchObject({ status: "failed", error: { code: "key_missing" } });
    expect(next.content).toBe(next.turn?.error?.message ?? "");
    expect(stage.calls(key)).toHaveLength(1);
  });

  test("a key that is replaced serves the answer to its end, and the new one the next", async () => {
    await using here = await place();
    const { reader, ask, key } = here;
    const { trigger, call } = await begun(here);
    const waiting = await ask("and then?");
    const other = await newKey(alice);
    stage.play(other, answers("With the new one."));
    await finish(call, "lo");
    expect((await answerTo(reader, trigger)).content).toBe("Hello");
    expect((await answerTo(reader, waiting)).content).toBe("With the new one.");
    expect(stage.calls(key)).toHaveLength(1);
  });

  test("a reaction to an answer counts, and stays when it is whole", async () => {
    await using here = await place();
    const { trigger, call, message } = await begun(here);
    await bob.call("setMessageReaction", { message_id: message.id, emoji: "👍" });
    await finish(call, "lo");
    expect(await answerTo(here.reader, trigger)).toMatchObject({
      content: "Hello",
      reactions: [{ emoji: "👍", count: 1, reacted: false }],
      version: trigger.seq + 3,
    });
  });

  test("nobody edits an answer, not even the agent's owner", async () => {
    await using here = await place();
    const { message } = await begun(here);
    const edit = alice.call("editMessage", { message_id: message.id, content: "mine" });
    expect((await failure(edit)).code).toBe("forbidden");
    expect(await contentOf(message.id)).toBe("Hel");
  });
});

describe.each(transports)("getTurn over %s", (transport) => {
  test("is the receipt of an answer, with its tokens for the owner alone", async () => {
    await using here = await place();
    const { chat, key, reader, ask, agent } = here;
    stage.play(key, fails(500), answers("Hello."));
    const trigger = await ask("hello");
    const final = await answerTo(reader, trigger);
    const receipt: TurnReceipt & { duration_ms: number } = {
      message_id: final.id,
      conversation_id: chat.id,
      agent: { ...final.sender, username: agent },
      triggered_by: trigger.id,
      model: "model-a",
      status: "complete",
      error: null,
      context_ids: [trigger.id],
      tries: 2,
      started_at: final.created_at,
      finished_at: final.finalized_at,
      first_token_ms: expect.any(Number),
      duration_ms: Date.parse(final.finalized_at ?? "") - Date.parse(final.created_at),
      usage: { input_tokens: 25, output_tokens: 15 },
    };
    const seenBy = async (person: Person) => {
      await using caller = await person.via(transport);
      return await caller.call("getTurn", { message_id: final.id });
    };
    const seen = await seenBy(alice);
    expect(seen).toEqual(receipt);
    expect(seen.first_token_ms).toBeWithin(0, receipt.duration_ms + 1);
    for (const person of [bob, carol]) {
      expect(await seenBy(person)).toEqual({ ...receipt, usage: null });
    }
  });

  test("is there while the answer streams", async () => {
    await using here = await place();
    const { trigger, message } = await begun(here);
    await using caller = await alice.via(transport);
    expect(await caller.call("getTurn", { message_id: message.id })).toMatchObject({
      status: "streaming",
      triggered_by: trigger.id,
      context_ids: [trigger.id],
      tries: 1,
      finished_at: null,
      duration_ms: null,
      usage: null,
    });
  });

  test("of a turn that never called anybody says so", async () => {
    await using here = await place();
    const { reader, ask } = here;
    await alice.call("removeAgentKey", { provider: "claude" });
    const { id } = await answerTo(reader, await ask("hello"));
    await using caller = await alice.via(transport);
    expect(await caller.call("getTurn", { message_id: id })).toMatchObject({
      status: "failed",
      error: { code: "key_missing" },
      context_ids: [],
      tries: 0,
      first_token_ms: null,
      usage: null,
    });
  });
});

test("usage is the sum of the receipts, however the turns ended", async () => {
  const owner = await signUp(server.url, "owner");
  const key = await newKey(owner);
  await using socket = await owner.connect();
  const chats = [
    await groupOf(owner, bob, { username: agentOf(owner) }),
    await groupOf(owner, carol, { username: agentOf(owner) }),
  ];
  const ask = async (index: number) => {
    const chat = chats[index] as Conversation;
    return say(owner, chat, `@${agentOf(owner)} hello`);
  };
  stage.play(key, answers("One."), fails(401), answers("Three."), fails(400));
  const ended: Message[] = [];
  for (let turn = 0; turn < 4; turn++) ended.push(await answerTo(socket, await ask(turn % 2)));
  stage.play(key);
  for (const [end, words] of [
    ["stop", "Hel"],
    ["cut", "Hel"],
    ["stop", ""],
  ] as const) {
    const trigger = await ask(0);
    const call = await stage.next(key);
    const { id } = await replyTo(socket, trigger);
    if (words !== "") {
      await call.says(words);
      await socket.event("events.messageDelta", (delta) => delta.id === id);
    }
    if (end === "stop") await owner.call("stopAgentTurn", { message_id: id });
    else call.cuts();
    ended.push(await answerTo(socket, trigger));
  }
  const sums = new Map<string, object>();
  for (const { id, conversation_id, created_at } of ended) {
    const { status, usage } = await owner.call("getTurn", { message_id: id });
    const day = created_at.slice(0, 10);
    const before = { turns: 0, failures: 0, input_tokens: 0, output_tokens: 0 };
    const sum = { ...before, ...sums.get(conversation_id) };
    sums.set(conversation_id, {
      agent: agentOf(owner),
      conversation_id,
      day,
      turns: sum.turns + 1,
      failures: sum.failures + (status === "failed" ? 1 : 0),
      input_tokens: sum.input_tokens + (usage?.input_tokens ?? 0),
      output_tokens: sum.output_tokens + (usage?.output_tokens ?? 0),
    });
  }
  const { items } = await owner.call("getAgentUsage");
  expect(items).toEqual([...sums.values()] as typeof items);
  expect(items.reduce((sum, { turns }) => sum + turns, 0)).toBe(7);
  // What was cut off was paid for: it is estimated, and not taken for free.
  for (const { id, turn } of ended.slice(4)) {
    const { usage } = await owner.call("getTurn", { message_id: id });
    expect(usage?.input_tokens).toBeGreaterThan(0);
    expect(turn?.usage).toEqual(usage);
  }
});

describe("a turn that cannot succeed", () => {
  const raw = "raw words of the provider";
  type Case = { scenes: Scene[]; code: string; calls: number };
  const cases: Record<string, Case> = {
    "a rejected key": { scenes: [fails(401)], code: "key_rejected", calls: 1 },
    "a key without permission": { scenes: [fails(403)], code: "key_rejected", calls: 1 },
    "a rate limit": { scenes: [fails(429)], code: "provider_rate_limited", calls: 3 },
    "an internal error": { scenes: [fails(500)], code: "provider_unavailable", calls: 3 },
    "an overload": { scenes: [fails(529)], code: "provider_unavailable", calls: 3 },
    "a bad gateway": { scenes: [fails(502)], code: "provider_unavailable", calls: 3 },
    "a connection cut at once": {
      scenes: [cutsBeforeHead],
      code: "provider_unavailable",
      calls: 3,
    },
    "a connection cut before the first word": {
      scenes: [cutsAfterHead],
      code: "provider_unavailable",
      calls: 3,
    },
    "a stream that ends without an answer": {
      scenes: [stopsShortAfter()],
      code: "provider_unavailable",
      calls: 3,
    },
    "garbage in place of a stream": {
      scenes: [sendsGarbageAfter()],
      code: "provider_unavailable",
      calls: 3,
    },
    "a web page in place of a stream": {
      scenes: [sendsPage],
      code: "provider_unavailable",
      calls: 3,
    },
    "a redirection": {
      scenes: [fails(302, { headers: { location: "http://127.0.0.1:1/" } })],
      code: "provider_unavailable",
      calls: 1,
    },
    "a request that is not accepted": { scenes: [fails(400)], code: "provider_refused", calls: 1 },
    "a model that is not known": { scenes: [fails(404)], code: "provider_refused", calls: 1 },
    "an answer that is declined": {
      scenes: [endsWith("refused")],
      code: "provider_refused",
      calls: 1,
    },
    "a conversation that is too long": {
      scenes: [fails(400, { message: `prompt is too long, ${raw}` })],
      code: "context_too_long",
      calls: 1,
    },
    "a request that is too large": { scenes: [fails(413)], code: "context_too_long", calls: 1 },
    "an error after another": {
      scenes: [fails(503), fails(401)],
      code: "key_rejected",
      calls: 2,
    },
  };

  /** Many people's turns fail at once: between its tries each would keep the others waiting. */
  async function failing(provider: string) {
    const run = async ([name, { scenes, code, calls }]: [string, Case]) => {
      const owner = await signUp(server.url, "unlucky");
      const key = await newKey(owner, provider);
      stage.play(key, ...scenes);
      await using socket = await owner.connect();
      const chat = await owner.call("startChat", { usernames: [agentOf(owner, provider)] });
      const final = await answerTo(socket, await say(owner, chat, "hello"));
      const placeholder = await replyTo(socket, { id: final.turn?.triggered_by ?? "" });
      await socket.event("events.typing", ({ is_typing }) => !is_typing);
      const receipt = await owner.call("getTurn", { message_id: final.id });
      return [name, { final, placeholder, receipt, key, socket, code, calls }] as const;
    };
    return new Map(await Promise.all(Object.entries(cases).map(run)));
  }

  describe.each(["claude", "gpt"])("with %s", (provider) => {
    let outcomes: ReturnType<typeof failing> | undefined;

    test.each(Object.keys(cases))("for %s ends with a sentence to act on", async (name) => {
      outcomes ??= failing(provider);
      const failed = (await outcomes).get(name);
      if (!failed) throw new Error(`there is no case ${name}`);
      const { final, placeholder, receipt, key, socket, code, calls } = failed;
      expect(final).toMatchObject({
        id: placeholder.id,
        finalized_at: expect.stringMatching(TIMESTAMP),
        turn: { status: "failed", error: { code } },
      });
      expect(final.turn?.error?.message).toMatch(/^[A-Z].{20,}\.$/);
      expect(final.content).toBe(final.turn?.error?.message ?? "");
      expect(stage.calls(key)).toHaveLength(calls);
      expect(receipt.tries).toBe(calls);
      expect(socket.eventsNamed("events.messageDelta")).toEqual([]);
      expect(JSON.stringify(socket.events)).not.toContain(raw);
      expect(JSON.stringify(socket.events)).not.toContain(key);
    });
  });

  test.each(["claude", "gpt"])("after the first word is not repeated by %s", async (provider) => {
    await using here = await place({ provider });
    const { key, reader, ask } = here;
    const heard = Promise.withResolvers<void>();
    const broken: Scene[] = [
      cutsAfter(heard.promise, "Hello 🦜"),
      stopsShortAfter("Hello 🦜"),
      sendsGarbageAfter("Hello 🦜"),
      reportsErrorAfter("overloaded_error", "Hello 🦜"),
    ];
    for (const [index, scene] of broken.entries()) {
      stage.play(key, scene);
      const trigger = await ask("hello");
      const { id } = await replyTo(reader, trigger);
      await reader.event("events.messageDelta", (delta) => delta.id === id);
      heard.resolve();
      const final = await answerTo(reader, trigger);
      expect(final).toMatchObject({
        content: "Hello 🦜",
        turn: { status: "failed", error: { code: "provider_unavailable" } },
      });
      expect(final.turn?.error?.message).not.toContain(raw);
      expect(stage.calls(key)).toHaveLength(index + 1);
    }
  });

  test("for want of a key names its owner, and calls nobody", async () => {
    await using here = await place();
    const { key, reader, ask } = here;
    await alice.call("removeAgentKey", { provider: "claude" });
    const final = await answerTo(reader, await ask("hello"));
    expect(final.turn).toMatchObject({ status: "failed", error: { code: "key_missing" } });
    expect(final.content).toContain(alice.account.display_name);
    expect(stage.calls(key)).toEqual([]);
  });

  test("is tried again after what the provider asks for, and succeeds if that does", async () => {
    await using here = await place();
    const { key, reader, ask } = here;
    const at: number[] = [];
    const noting =
      (scene: Scene): Scene =>
      (exchange) => {
        at.push(performance.now());
        return scene(exchange);
      };
    stage.play(
      key,
      noting(fails(429, { headers: { "retry-after": "1" } })),
      noting(fails(503, { headers: { "retry-after-ms": "700" } })),
      noting(answers("At last.")),
    );
    const final = await answerTo(reader, await ask("hello"));
    expect(final).toMatchObject({ content: "At last.", turn: { status: "complete" } });
    const [first = 0, second = 0, third = 0] = at;
    // Never sooner than asked for; how much later is the machine's affair.
    expect(second - first).toBeGreaterThanOrEqual(1000);
    expect(third - second).toBeGreaterThanOrEqual(700);
    expect((await alice.call("getTurn", { message_id: final.id })).tries).toBe(3);
  });
});

describe("limits", () => {
  /** Somebody with limits and many groups in which their agent is always on. */
  async function limited(limits: object, groups: number, spenders = bob) {
    const owner = await signUp(server.url, "thrifty");
    const key = await newKey(owner);
    await owner.call("setAgentLimits", { provider: "claude", ...limits });
    stage.play(key, spendsAll);
    const agent_username = agentOf(owner);
    const chats: Conversation[] = [];
    for (let made = 0; made < groups; made += 100) {
      const some = Array.from({ length: Math.min(100, groups - made) }, async () => {
        const usernames = [spenders.username, agent_username];
        const chat = await owner.call("startChat", { usernames, kind: "group" });
        await owner.call("addGroupAgent", { chat_id: chat.id, agent_username, always_on: true });
        return chat;
      });
      chats.push(...(await Promise.all(some)));
    }
    return { owner, key, chats, agent: agent_username };
  }

  /** What a stand-in that uses up all it may has charged for a key. */
  const charged = (key: string) =>
    stage.calls(key).reduce((sum, { body }) => sum + 25 + Number(body.max_tokens), 0);

  const used = async (owner: Person) => {
    const { items } = await owner.call("getAgentUsage");
    return items.reduce(
      (sum, { input_tokens, output_tokens }) => sum + input_tokens + output_tokens,
      0,
    );
  };

  async function endings(socket: Socket, triggers: Message[]) {
    const asked = new Set(triggers.map(({ id }) => id));
    const finals = await socket.until(() => {
      const ended = socket.eventsNamed("events.messageComplete").map(({ params }) => params);
      const theirs = ended.filter(({ turn }) => asked.has(turn?.triggered_by ?? ""));
      return theirs.length === asked.size && theirs;
    }, "every answer");
    const exceeded = finals.filter(({ turn }) => turn?.error?.code === "budget_exceeded");
    const complete = finals.filter(({ turn }) => turn?.status === "complete");
    expect(exceeded.length + complete.length).toBe(triggers.length);
    for (const { content, turn } of exceeded) {
      expect(turn?.status).toBe("failed");
      expect(content).toBe(turn?.error?.message ?? "");
      expect(content).toMatch(/^This agent.*\.$/);
    }
    return { exceeded: exceeded.length, complete: complete.length };
  }

  test("a thousand triggers at once cannot spend past a day's limit", async () => {
    const daily_tokens = 20_000;
    const { owner, key, chats } = await limited({ daily_tokens }, 1000);
    await using socket = await bob.connect();
    const triggers = await Promise.all(chats.map((chat) => say(bob, chat, "hello")));
    const { exceeded, complete } = await endings(socket, triggers);
    expect(stage.calls(key)).toHaveLength(complete);
    expect(complete).toBeGreaterThan(10);
    expect(exceeded).toBeGreaterThan(900);
    expect(charged(key)).toBeLessThanOrEqual(daily_tokens);
    expect(await used(owner)).toBe(charged(key));
  }, 30_000);

  test("as many turns a minute as allowed run, of however many that come at once", async () => {
    const { key, chats } = await limited({ turns_per_minute: 7 }, 60);
    await using socket = await bob.connect();
    const triggers = await Promise.all(chats.map((chat) => say(bob, chat, "hello")));
    expect(await endings(socket, triggers)).toEqual({ exceeded: 53, complete: 7 });
    expect(stage.calls(key)).toHaveLength(7);
    // Those that were refused do not count against the next.
    expect(await endings(socket, [await say(bob, chats[0] as Conversation, "again")])).toEqual({
      exceeded: 1,
      complete: 0,
    });
  });

  test("a limit for each conversation is each conversation's own", async () => {
    const { key, chats, owner } = await limited({ chat_daily_tokens: 3000 }, 2);
    await using socket = await bob.connect();
    for (const chat of chats) {
      const before = charged(key);
      let outcomes = { exceeded: 0, complete: 0 };
      while (outcomes.exceeded === 0) {
        outcomes = await endings(socket, [await say(bob, chat, "hello")]);
      }
      expect(charged(key) - before).toBeWithin(1000, 3001);
    }
    await owner.call("setAgentLimits", { provider: "claude", chat_daily_tokens: null });
    expect(await endings(socket, [await say(bob, chats[0] as Conversation, "now?")])).toEqual({
      exceeded: 0,
      complete: 1,
    });
  });

  test("what is left shortens the answer that is asked for", async () => {
    const { key, chats } = await limited({ daily_tokens: 1200 }, 1);
    await using socket = await bob.connect();
    await endings(socket, [await say(bob, chats[0] as Conversation, "hello")]);
    expect(Number(stage.calls(key)[0]?.body.max_tokens)).toBeWithin(64, 1000);
  });

  test("a limit of nothing calls nobody, and lifting it does", async () => {
    for (const limit of ["daily_tokens", "chat_daily_tokens", "turns_per_minute"]) {
      const { owner, key, chats } = await limited({ [limit]: 0 }, 1);
      const [chat] = chats as [Conversation];
      await using socket = await bob.connect();
      const trigger = await say(bob, chat, "hello");
      expect(await endings(socket, [trigger])).toMatchObject({ exceeded: 1 });
      expect(stage.calls(key)).toEqual([]);
      expect(await used(owner)).toBe(0);
      await owner.call("setAgentLimits", { provider: "claude", [limit]: null });
      expect(await endings(socket, [await say(bob, chat, "now?")])).toMatchObject({ complete: 1 });
    }
  });

  test("a key that its owner keeps to themselves is spent on nobody else's words", async () => {
    const { owner, key, chats, agent } = await limited({ spenders: "owner" }, 1);
    const [chat] = chats as [Conversation];
    await using socket = await bob.connect();
    // Talk is not answered; whoever asks is told why not.
    await say(bob, chat, "hello");
    expect(await bob.call("stopChatAgents", { chat_id: chat.id })).toEqual({
      stopped: 0,
      cancelled: 0,
    });
    const refused = await answerTo(socket, await say(bob, chat, `@${agent} hello`));
    expect(refused.turn).toMatchObject({ status: "failed", error: { code: "budget_exceeded" } });
    expect(refused.content).toContain("owner");
    // Nor does asking again help, unless the owner does it.
    await bob.call("retryAgentTurn", { message_id: refused.id });
    const second = await socket.event("events.messageComplete", ({ id }) => id !== refused.id);
    expect(second.params.turn).toMatchObject({ error: { code: "budget_exceeded" } });
    expect(stage.calls(key)).toEqual([]);
    const seen = new Set([refused.id, second.params.id]);
    await owner.call("retryAgentTurn", { message_id: refused.id });
    const third = await socket.event("events.messageComplete", ({ id }) => !seen.has(id));
    expect(third.params.turn).toMatchObject({
      status: "complete",
      triggered_by: refused.turn?.triggered_by,
    });
    expect(await answerTo(socket, await say(owner, chat, "hello"))).toMatchObject({
      turn: { status: "complete" },
    });
  });
});
