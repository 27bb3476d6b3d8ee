import { afterAll, describe, expect, test } from "bun:test";
import type { Message } from "@parley/protocol";
import {
  agentOf,
  answerTo,
  assembledContent,
  groupOf,
  type Person,
  replyTo,
  type Socket,
  say,
  TIMESTAMP,
  transports,
} from "@parley/testkit/client.ts";
import { answers, answersByteByByte, fails } from "@parley/testkit/provider-responders.ts";
import { onSeveralNodes } from "@parley/testkit/server.ts";
import { bodyOf, finish, type ModelInput, newKey, startTurns } from "@parley/testkit/turns.ts";

const turns = await startTurns();
const { sharedProvider, alice, bob, carol, dave, agentGroup, startAnswer, expectNoTurns } = turns;
afterAll(() => turns[Symbol.asyncDispose]());

/** A node may read stored events from the log before the typing event, which is not stored, arrives. */
const typingLastOnSeveralNodes = <Frame extends { method: string }>(frames: Frame[]) =>
  onSeveralNodes
    ? frames.toSorted((one, other) => Number(isTyping(one)) - Number(isTyping(other)))
    : frames;

const isTyping = ({ method }: { method: string }) => method === "events.typing";

describe.each(["claude", "gpt"])("the events of a turn of %s", (provider) => {
  test("are typing, the empty message, deltas, the complete message and the end of typing", async () => {
    await using group = await agentGroup({ provider });
    const { chat, key, reader, ask } = group;
    await using own = await alice.connect();
    await using outsider = await dave.connect();
    sharedProvider.respond(key, answers("Hel", "lo ", "🦜"));
    const trigger = await ask("hello");
    const final = await answerTo(reader, trigger);
    const actor = final.sender;
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
      action: null,
      uses: [],
      tool_calls: [],
      files: [],
      turn: {
        status: "streaming",
        triggered_by: trigger.id,
        model: provider === "claude" ? "model-a" : "model-o",
        error: null,
        usage: null,
      },
    };
    for (const socket of [reader, own]) {
      await socket.event(
        "events.typing",
        ({ conversation_id, is_typing }) => conversation_id === chat.id && !is_typing,
      );
      const [, first, ...events] = typingLastOnSeveralNodes(await socket.settledButAccounts());
      expect(first).toMatchObject({ method: "events.messageNew", params: { id: trigger.id } });
      const deltas = events.filter(({ method }) => method === "events.messageDelta");
      expect(deltas.length).toBeGreaterThan(0);
      const expected = [
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
      ];
      expect(events as unknown[]).toEqual(typingLastOnSeveralNodes(expected));
    }
    expect(await bob.call("getMessage", { message_id: final.id })).toEqual(final);
    expect(await outsider.settledButAccounts()).toHaveLength(1);
  });

  test("have offsets in bytes, and deltas that concatenate to the content", async () => {
    await using group = await agentGroup({ provider });
    const { key, reader, ask } = group;
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
    const splitCharacter = ["a\ud83e", "\udd9cb"];
    for (const [responder, content] of [
      [answers(...texts), texts.join("")],
      [answersByteByByte(...texts), texts.join("")],
      [answers(...splitCharacter), "a🦜b"],
    ] as const) {
      sharedProvider.respond(key, responder);
      const final = await answerTo(reader, await ask("go"));
      expect(final.content).toBe(content);
      expect(assembledContent(reader, { id: final.id, content: "" })).toBe(content);
      const deltas = reader
        .eventsNamed("events.messageDelta")
        .filter(({ params }) => params.id === final.id);
      expect(deltas.every(({ params }) => params.delta.isWellFormed())).toBe(true);
      expect(deltas.at(-1)?.params.offset).toBe(Buffer.byteLength(content));
    }
  });
});

describe("a client that connects during an answer", () => {
  const reads: Record<string, (person: Person, chat: string, id: string) => Promise<Message>> = {
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

  for (const [operation, read] of Object.entries(reads)) {
    test(`gets the text so far from ${operation}, and each later byte once`, async () => {
      await using group = await agentGroup();
      const { trigger, call, message } = await startAnswer(group, "Hel");
      await using late = await carol.connect();
      const partial = await read(carol, group.chat.id, message.id);
      expect(partial).toEqual({ ...message, content: "Hel" });
      await finish(call, "lo 🦜", " there");
      const final = await answerTo(late, trigger);
      expect(final.content).toBe("Hello 🦜 there");
      expect(assembledContent(late, partial)).toBe(final.content);
    });
  }

  test("gets the whole answer, for any number of clients at any time", async () => {
    await using group = await agentGroup();
    const { reader } = group;
    const { trigger, call, message } = await startAnswer(group, "0 ");
    const sockets = await Promise.all(Array.from({ length: 10 }, () => carol.connect()));
    let isStreaming = true;
    const streaming = (async () => {
      for (let word = 1; word < 400; word++) await call.sendText(`${word} 語 `);
      isStreaming = false;
      await call.complete();
    })();
    const partials: { socket: Socket; partial: Message }[] = [];
    while (isStreaming) {
      const readers = sockets.map(async (socket) => {
        const partial = await carol.call("getMessage", { message_id: message.id });
        partials.push({ socket, partial });
      });
      await Promise.all(readers);
    }
    await streaming;
    const final = await answerTo(reader, trigger);
    await Promise.all(sockets.map((socket) => answerTo(socket, trigger)));
    for (const { socket, partial } of partials)
      expect(assembledContent(socket, partial)).toBe(final.content);
    for (const socket of sockets) await socket.close();
  });
});

describe("an agent answers", () => {
  test("every message of its owner in a direct conversation", async () => {
    const key = await newKey(alice);
    sharedProvider.respond(key, answers("Hello."));
    await using socket = await alice.connect();
    const chat = await alice.call("startChat", { usernames: [agentOf(alice)] });
    for (const words of ["hello", "`@nobody`"]) {
      const answer = await answerTo(socket, await say(alice, chat, words));
      expect(answer).toMatchObject({ content: "Hello.", sender: { username: agentOf(alice) } });
    }
  });

  test("a mention in a group, in upper or lower case, but not in code", async () => {
    await using group = await agentGroup();
    const { chat, key, agent, reader } = group;
    sharedProvider.respond(key, answers("Yes?"));
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
      await expectNoTurns(chat);
    }
    expect(sharedProvider.calls(key)).toHaveLength(1);
  });

  test("every human message in a group if it is always on", async () => {
    await using group = await agentGroup({ always_on: true });
    const { chat, key, reader } = group;
    sharedProvider.respond(key, answers("Yes?"));
    for (const person of [alice, bob, carol]) {
      const answer = await answerTo(reader, await say(person, chat, "hello"));
      expect(answer.content).toBe("Yes?");
    }
  });

  test("according to a new mode from the next message on", async () => {
    await using group = await agentGroup();
    const { chat, key, agent, reader } = group;
    sharedProvider.respond(key, answers("Yes?"));
    const setMode = (always_on: boolean) =>
      alice.call("setGroupAgentMode", { chat_id: chat.id, agent_username: agent, always_on });
    await say(bob, chat, "before");
    await setMode(true);
    await expectNoTurns(chat);
    await answerTo(reader, await say(bob, chat, "now"));
    await setMode(false);
    await say(bob, chat, "after");
    await expectNoTurns(chat);
  });

  test.each(transports)("a message that is sent again over %s only once", async (transport) => {
    await using group = await agentGroup();
    const { chat, key, agent, reader } = group;
    sharedProvider.respond(key, answers("Once."));
    await using caller = await bob.via(transport);
    const input = { chat_id: chat.id, content: `@${agent} hello`, client_msg_id: "same" };
    const trigger = await caller.call("sendMessage", input);
    expect(await caller.call("sendMessage", input)).toEqual(trigger);
    await answerTo(reader, trigger);
    expect(await caller.call("sendMessage", input)).toEqual(trigger);
    await expectNoTurns(chat);
    expect(sharedProvider.calls(key)).toHaveLength(1);
  });

  test("no mention that an edit adds", async () => {
    await using group = await agentGroup();
    const { chat, agent } = group;
    const { id } = await say(bob, chat, "hello");
    const edited = await bob.call("editMessage", { message_id: id, content: `@${agent} hello` });
    expect(edited.mentions).toEqual([agent]);
    await expectNoTurns(chat);
  });

  test("no message of an agent, not even if it is always on", async () => {
    await using group = await agentGroup();
    const { chat, reader, agent } = group;
    const other = agentOf(bob, "gpt");
    const { trigger, call } = await startAnswer(group, "Hm. ");
    await bob.call("addGroupAgent", { chat_id: chat.id, agent_username: other, always_on: true });
    await finish(call, `@${other}, and @${agent}, what do you think?`);
    expect((await answerTo(reader, trigger)).mentions).toEqual([other, agent]);
    await expectNoTurns(chat);
  });

  test("no message from before it joined", async () => {
    const chat = await groupOf(alice, carol);
    await say(alice, chat, `@${agentOf(alice)} hello`);
    await alice.call("addGroupAgent", {
      chat_id: chat.id,
      agent_username: agentOf(alice),
      always_on: true,
    });
    await expectNoTurns(chat);
  });
});

describe("turns of one agent", () => {
  test("run concurrently in different conversations", async () => {
    await using one = await agentGroup();
    const other = await groupOf(alice, bob, { username: one.agent });
    const first = await startAnswer(one);
    const trigger = await say(bob, other, `@${one.agent} hello`);
    const call = await sharedProvider.nextCall(one.key);
    await finish(call, "Second.");
    expect(await answerTo(one.reader, trigger)).toMatchObject({ content: "Second." });
    await finish(first.call, "lo");
    expect(await answerTo(one.reader, first.trigger)).toMatchObject({ content: "Hello" });
  });

  test("run concurrently with turns of other agents", async () => {
    await using group = await agentGroup();
    const { chat, reader, agent, key } = group;
    const others = [agentOf(alice, "gpt"), agentOf(bob)];
    const keys = [key, await newKey(alice, "gpt"), await newKey(bob)];
    await alice.call("addGroupAgent", { chat_id: chat.id, agent_username: others[0] as string });
    await bob.call("addGroupAgent", { chat_id: chat.id, agent_username: others[1] as string });
    const agents = [agent, ...others];
    const trigger = await say(carol, chat, agents.map((each) => `@${each}`).join(" "));
    const calls = await Promise.all(keys.map((each) => sharedProvider.nextCall(each)));
    for (const [index, call] of calls.entries()) await call.sendText(`I am ${index}`);
    for (const [index, call] of calls.entries()) {
      await finish(call, ".");
      const answer = await answerTo(reader, trigger, agents[index]);
      expect(answer.content).toBe(`I am ${index}.`);
    }
    const placeholders = await Promise.all(agents.map((each) => replyTo(reader, trigger, each)));
    expect(placeholders.map(({ seq }) => seq)).toEqual([1, 2, 3].map((n) => trigger.seq + n));
  });
});

describe("the request to the model", () => {
  test("has the agent's identity, its owner's instructions and the messages that its owner can see", async () => {
    await using group = await agentGroup();
    const { chat, key, agent, reader, ask } = group;
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
    const call = await sharedProvider.nextCall(key);
    // A node that reads it from the log would show the new name.
    const placeholder = await replyTo(reader, trigger);
    await alice.call("setAgentProfile", {
      provider: "claude",
      model: null,
      display_name: `${alice.username}'s Claude`,
      instructions: null,
    });
    const { system, messages, model, max_tokens } = bodyOf(call);
    expect({ model, max_tokens }).toEqual({ model: "model-of-choice", max_tokens: 1000 });
    expect(system).toStartWith(
      `You are @${agent}, an AI agent that belongs to @${alice.username}.`,
    );
    for (const person of [alice, bob, carol]) expect(system).toContain(`@${person.username}`);
    expect(system).not.toContain("Sage");
    const [named] = (call.request.body as unknown as ModelInput).messages;
    expect(named?.content).toStartWith(`(In this conversation @${agent} is called "Sage", `);
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
    expect(placeholder.sender.display_name).toBe("Sage");
    const { context_ids } = await carol.call("getTurn", { message_id: answer.id });
    expect(context_ids).toEqual([kept.id, bobsOnly.id, trigger.id]);
  });

  test("has the agent's earlier answers as its own messages, without failed turns", async () => {
    await using group = await agentGroup();
    const { key, agent, reader, ask } = group;
    sharedProvider.respond(key, fails(401), answers("First."), fails(400));
    for (const words of ["one", "two", "three"]) await answerTo(reader, await ask(words));
    sharedProvider.respond(key);
    await ask("four");
    const { messages } = bodyOf(await sharedProvider.nextCall(key));
    const line = (words: string) => `${bob.username}: @${agent} ${words}`;
    expect(messages).toEqual([
      { role: "user", content: `${line("one")}\n\n${line("two")}` },
      { role: "assistant", content: "First." },
      { role: "user", content: `${line("three")}\n\n${line("four")}` },
    ]);
  });
});
