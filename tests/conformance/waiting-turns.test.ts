import { afterAll, describe, expect, test } from "bun:test";
import type { Conversation, Message } from "@parley/protocol";
import {
  agentOf,
  answerTo,
  failure,
  outcome,
  type Person,
  replyTo,
  say,
  signUp,
} from "@parley/testkit/client.ts";
import { answers, spendsAll } from "@parley/testkit/provider-responders.ts";
import type { PendingCall } from "@parley/testkit/shared-provider.ts";
import { type AgentGroup, bodyOf, finish, newKey, startTurns } from "@parley/testkit/turns.ts";

const turns = await startTurns();
const { sharedProvider, server, alice, bob, carol, agentGroup, startAnswer, expectNoTurns } = turns;
afterAll(() => turns[Symbol.asyncDispose]());

const linesOf = (call: PendingCall) =>
  bodyOf(call).messages.map(({ role, content }) => [role, content]);
const waitingTurns = (waiting_turns: number) =>
  alice.call("setAgentLimits", { provider: "claude", waiting_turns });

async function askAll({ ask }: AgentGroup, words: readonly string[]): Promise<Message[]> {
  const asked: Message[] = [];
  for (const each of words) asked.push(await ask(each));
  return asked;
}

/** The messages of agents, oldest first. */
const answersIn = async (chat: Conversation) =>
  (await bob.call("getChatHistory", { chat_id: chat.id, limit: 100 })).items.filter(
    ({ turn }) => turn !== null,
  );

describe("messages that arrive while an agent answers", () => {
  test("each get a turn, in order, with the earlier answers in its context", async () => {
    await using group = await agentGroup();
    const { chat, key, reader, agent } = group;
    const first = await startAnswer(group, "Answer zero.");
    const asked = await askAll(group, ["one", "two", "three"]);
    await say(carol, chat, "by the way");
    expect(sharedProvider.calls(key)).toHaveLength(1);
    await finish(first.call);
    const line = (words: string) => ["user", `${bob.username}: @${agent} ${words}`];
    const known: (string | undefined)[][] = [line("hello"), ["assistant", "Answer zero."]];
    for (const [index, words] of ["one", "two", "three"].entries()) {
      const call = await sharedProvider.nextCall(key);
      known.push(line(words));
      if (words === "three") {
        const [, last] = known.pop() as string[];
        known.push(["user", `${last}\n\n${carol.username}: by the way`]);
      }
      expect(linesOf(call)).toEqual(known as never);
      await finish(call, `Answer ${words}.`);
      const answer = await answerTo(reader, asked[index] as Message);
      expect(answer.content).toBe(`Answer ${words}.`);
      known.push(["assistant", answer.content]);
    }
    await expectNoTurns(chat);
    const given = await answersIn(chat);
    expect(given.map(({ turn }) => turn?.triggered_by)).toEqual(
      [first.trigger, ...asked].map(({ id }) => id),
    );
  });

  test("share the last turn when waiting_turns is reached", async () => {
    await using group = await agentGroup();
    const { chat, key, reader } = group;
    const first = await startAnswer(group);
    const asked = await askAll(
      group,
      Array.from({ length: 18 }, (_, n) => `question ${n}.`),
    );
    sharedProvider.respond(key, answers("Yes."));
    await finish(first.call);
    await answerTo(reader, asked[17] as Message);
    const given = (await answersIn(chat)).slice(1).map(({ turn }) => turn?.triggered_by);
    const expected = [...asked.slice(0, 15), asked[17] as Message].map(({ id }) => id);
    expect(given).toEqual(expected);
    const lastCall = JSON.stringify(sharedProvider.calls(key).at(-1)?.body.messages);
    for (const n of [15, 16, 17]) expect(lastCall).toContain(`question ${n}.`);
    await expectNoTurns(chat);
  });

  test("share one turn if waiting_turns is 1", async () => {
    await waitingTurns(1);
    await using group = await agentGroup();
    const { chat, key, reader } = group;
    const first = await startAnswer(group);
    const asked = await askAll(group, ["one", "two", "three"]);
    await say(carol, chat, "by the way");
    await waitingTurns(16);
    await finish(first.call, "lo");
    const next = await sharedProvider.nextCall(key);
    for (const words of ["Hello", "one", "two", "three", "by the way"]) {
      expect(JSON.stringify(bodyOf(next).messages)).toContain(words);
    }
    await finish(next, "To all three.");
    expect((await answerTo(reader, asked[2] as Message)).content).toBe("To all three.");
    await expectNoTurns(chat);
    expect(sharedProvider.calls(key)).toHaveLength(2);
    expect(await answersIn(chat)).toHaveLength(2);
  });

  test("all lose their turns by stopChatAgents", async () => {
    await using group = await agentGroup();
    const { chat, key } = group;
    await startAnswer(group);
    await askAll(group, ["one", "two", "three"]);
    expect(await carol.call("stopChatAgents", { chat_id: chat.id })).toEqual({
      stopped: 1,
      cancelled: 3,
    });
    await expectNoTurns(chat);
    expect(sharedProvider.calls(key)).toHaveLength(1);
  });

  test("lose their turns when the agent is removed or its owner leaves", async () => {
    for (const leave of [
      (chat_id: string) =>
        alice.call("removeGroupAgent", { chat_id, agent_username: agentOf(alice) }),
      (chat_id: string) => alice.call("leaveChat", { chat_id }),
    ]) {
      await using group = await agentGroup();
      const { chat, key } = group;
      const { call } = await startAnswer(group);
      await askAll(group, ["one", "two"]);
      await leave(chat.id);
      await call.request.closed;
      await expectNoTurns(chat);
      expect(sharedProvider.calls(key)).toHaveLength(1);
    }
  });

  test("are not answered if they are deleted meanwhile, but the others are", async () => {
    await using group = await agentGroup();
    const { chat, key, reader } = group;
    const first = await startAnswer(group);
    const asked = await askAll(group, ["one", "two", "three"]);
    const message_ids = [asked[1] as Message].map(({ id }) => id);
    await bob.call("deleteMessages", { chat_id: chat.id, message_ids });
    sharedProvider.respond(key, answers("Yes."));
    await finish(first.call);
    await answerTo(reader, asked[2] as Message);
    expect((await answersIn(chat)).map(({ turn }) => turn?.triggered_by)).toEqual(
      [first.trigger, asked[0] as Message, asked[2] as Message].map(({ id }) => id),
    );
    for (const { body } of sharedProvider.calls(key))
      expect(JSON.stringify(body.messages)).not.toContain("two");
  });

  test("are answered without a deleted one that shares their turn", async () => {
    await waitingTurns(1);
    await using group = await agentGroup();
    const { chat, key, reader } = group;
    const first = await startAnswer(group);
    const [, two] = (await askAll(group, ["one", "two"])) as [Message, Message];
    await waitingTurns(16);
    await bob.call("deleteMessages", { chat_id: chat.id, message_ids: [two.id] });
    await finish(first.call, "lo");
    const next = await sharedProvider.nextCall(key);
    expect(bodyOf(next).messages.at(-1)?.content).toContain("one");
    expect(JSON.stringify(bodyOf(next).messages)).not.toContain("two");
    await finish(next, "One.");
    expect((await answerTo(reader, two)).content).toBe("One.");
  });

  test("are sent to the model as edited", async () => {
    await using group = await agentGroup();
    const { key, reader, agent } = group;
    const first = await startAnswer(group);
    const waiting = await group.ask("a typo");
    const content = `@${agent} no typo`;
    await bob.call("editMessage", { message_id: waiting.id, content });
    await finish(first.call);
    const next = await sharedProvider.nextCall(key);
    expect(bodyOf(next).messages.at(-1)?.content).toBe(`${bob.username}: ${content}`);
    await finish(next, "Right.");
    await answerTo(reader, waiting);
  });
});

test("a thousand triggers in one conversation cannot exceed the daily limit", async () => {
  const daily_tokens = 20_000;
  const owner = await signUp(server.url, "thrifty");
  const key = await newKey(owner);
  const limits = { daily_tokens, turns_per_minute: null, waiting_turns: 100 };
  await owner.call("setAgentLimits", { provider: "claude", ...limits });
  sharedProvider.respond(key, spendsAll);
  await using socket = await owner.connect();
  const chat = await owner.call("startChat", { usernames: [agentOf(owner)] });
  const asked = await Promise.all(Array.from({ length: 1000 }, () => say(owner, chat, "hello")));
  const last = asked.reduce((one, other) => (one.seq > other.seq ? one : other));
  expect((await answerTo(socket, last)).turn?.error?.code).toBe("budget_exceeded");
  const spent = sharedProvider.calls(key).length * 1000;
  expect(spent).toBeWithin(1000, daily_tokens + 1);
  const ended = socket.eventsNamed("events.messageComplete").map(({ params }) => params);
  expect(ended.filter(({ turn }) => turn?.status === "complete")).toHaveLength(
    sharedProvider.calls(key).length,
  );
  expect(ended.length).toBeGreaterThanOrEqual(100);
  const { items } = await owner.call("getAgentUsage");
  const used = items.reduce((sum, row) => sum + row.input_tokens + row.output_tokens, 0);
  expect(used).toBeLessThanOrEqual(daily_tokens);
});

describe("retryAgentTurn", () => {
  test("is a conflict while a retry of the same message waits", async () => {
    await using group = await agentGroup();
    const { chat, key, reader, ask } = group;
    sharedProvider.respond(key, answers("First."));
    const trigger = await ask("hello");
    const message_id = (await answerTo(reader, trigger)).id;
    sharedProvider.respond(key);
    const busy = await startAnswer(group);
    await bob.call("retryAgentTurn", { message_id });
    for (const who of [alice, bob]) {
      const again = await failure(who.call("retryAgentTurn", { message_id }));
      expect(again.code).toBe("conflict");
    }
    await finish(busy.call);
    const second = await sharedProvider.nextCall(key);
    // The first retry runs, so another one may wait.
    expect(await outcome(bob.call("retryAgentTurn", { message_id }))).toBe("ok");
    await finish(second, "Second.");
    await finish(await sharedProvider.nextCall(key), "Third.");
    await reader.until(
      () =>
        reader
          .eventsNamed("events.messageComplete")
          .some(({ params }) => params.content === "Third."),
      "the third answer",
    );
    await expectNoTurns(chat);
    const given = (await answersIn(chat)).filter(({ turn }) => turn?.triggered_by === trigger.id);
    expect(given.map(({ content }) => content)).toEqual(["First.", "Second.", "Third."]);
  });

  test("is a conflict when waiting_turns is reached", async () => {
    await using group = await agentGroup();
    const { chat, key, reader, ask } = group;
    sharedProvider.respond(key, answers("First."));
    const { id: message_id } = await answerTo(reader, await ask("hello"));
    sharedProvider.respond(key);
    await waitingTurns(1);
    await startAnswer(group);
    await ask("and then?");
    expect(await outcome(bob.call("retryAgentTurn", { message_id }))).toBe("conflict");
    await waitingTurns(16);
    expect(await outcome(bob.call("retryAgentTurn", { message_id }))).toBe("ok");
    await carol.call("stopChatAgents", { chat_id: chat.id });
  });

  test("sends the edited message, whoever retries", async () => {
    await using group = await agentGroup();
    const { key, reader, ask, agent } = group;
    sharedProvider.respond(key, answers("Noted."));
    const trigger = await ask("the wrong question");
    const { id: message_id } = await answerTo(reader, trigger);
    const retry = async (who: Person, content: string) => {
      await bob.call("editMessage", { message_id: trigger.id, content });
      const before = sharedProvider.calls(key).length;
      const known = reader.eventsNamed("events.messageComplete").length;
      await who.call("retryAgentTurn", { message_id });
      await reader.until(
        () => reader.eventsNamed("events.messageComplete").length > known,
        "the new answer",
      );
      const [request] = sharedProvider.calls(key).slice(before);
      if (!request) throw new Error("the provider was not asked");
      expect(bodyOf({ request }).messages).toEqual([
        { role: "user", content: `${bob.username}: ${content}` },
      ]);
    };
    await retry(bob, `@${agent} the right question`);
    // A retry names the agent, so the edited message needs no mention.
    await retry(alice, "no mention");
    await expect(carol.call("retryAgentTurn", { message_id })).rejects.toThrow("forbidden");
  });

  test("has answers to earlier messages in its context, even if they came after the message", async () => {
    await using group = await agentGroup();
    const { key, reader, agent } = group;
    const first = await startAnswer(group, "Answer zero.");
    const [one] = (await askAll(group, ["one"])) as [Message];
    await finish(first.call);
    await finish(await sharedProvider.nextCall(key), "Answer one.");
    const { id: message_id } = await answerTo(reader, one);
    await bob.call("retryAgentTurn", { message_id });
    const again = await sharedProvider.nextCall(key);
    const line = (words: string) => ["user", `${bob.username}: @${agent} ${words}`];
    expect(linesOf(again)).toEqual([
      line("hello"),
      ["assistant", "Answer zero."],
      line("one"),
    ] as never);
    await finish(again, "Answer one, better.");
    await replyTo(reader, one);
  });
});
