import { afterAll, describe, expect, test } from "bun:test";
import type { Message } from "@parley/protocol";
import {
  agentOf,
  answerTo,
  assembledContent,
  failure,
  groupOf,
  outcome,
  replyTo,
  type Socket,
  say,
  TIMESTAMP,
  transports,
} from "@parley/testkit/client.ts";
import { answers, fails } from "@parley/testkit/provider-responders.ts";
import { onSeveralNodes } from "@parley/testkit/server.ts";
import type { PendingCall } from "@parley/testkit/shared-provider.ts";
import { bodyOf, finish, newKey, startTurns } from "@parley/testkit/turns.ts";
import { until } from "@parley/testkit/until.ts";

const turns = await startTurns();
const { sharedProvider, alice, bob, carol, dave, agentGroup, startAnswer, expectNoTurns } = turns;
afterAll(() => turns[Symbol.asyncDispose]());

const lastText = (call: PendingCall) => bodyOf(call).messages.at(-1)?.content ?? "";

/** Waits for the end of an agent's typing there: that of an earlier test may still arrive. */
const typingEnded = (reader: Socket, { id }: { id: string }) =>
  reader.event(
    "events.typing",
    ({ conversation_id, is_typing }) => conversation_id === id && !is_typing,
  );

const contentOf = async (message_id: string) =>
  (await alice.call("getMessage", { message_id })).content;

describe.each(transports)("stopAgentTurn over %s", (transport) => {
  test("finalizes the message with its text so far and closes the connection to the provider", async () => {
    await using group = await agentGroup();
    const { chat, reader, agent } = group;
    const { trigger, call, message } = await startAnswer(group, "Hel");
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
    await typingEnded(reader, chat);
    expect(assembledContent(reader, message)).toBe("Hel");
    expect(reader.events.at(-1)).toMatchObject({
      method: "events.typing",
      params: { actor: { username: agent }, is_typing: false },
    });
    await expectNoTurns(chat);
  });

  test("before the first text leaves an empty final message", async () => {
    await using group = await agentGroup();
    const { key, reader, ask } = group;
    const trigger = await ask("hello");
    const call = await sharedProvider.nextCall(key);
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

  test("after the end of the turn is a conflict, however it ended", async () => {
    await using group = await agentGroup();
    const { key, reader, ask } = group;
    sharedProvider.respond(key, answers("Done."), fails(401));
    await using caller = await alice.via(transport);
    const complete = await answerTo(reader, await ask("one"));
    const failed = await answerTo(reader, await ask("two"));
    sharedProvider.respond(key);
    const { trigger, message } = await startAnswer(group);
    await caller.call("stopAgentTurn", { message_id: message.id });
    const stopped = await answerTo(reader, trigger);
    for (const ended of [complete, failed, stopped]) {
      const refused = await failure(caller.call("stopAgentTurn", { message_id: ended.id }));
      expect(refused.code).toBe("conflict");
      expect(await alice.call("getMessage", { message_id: ended.id })).toEqual(ended);
    }
  });

  test("is allowed to the agent's owner, the asker and the group's admin", async () => {
    await using group = await agentGroup();
    const { reader, chat } = group;
    const owned = await groupOf(dave, alice, bob, carol);
    await alice.call("addGroupAgent", { chat_id: owned.id, agent_username: group.agent });
    for (const who of [alice, bob, dave]) {
      const trigger = await say(bob, owned, `@${group.agent} hello`);
      await sharedProvider.nextCall(group.key);
      const { id } = await replyTo(reader, trigger);
      await using caller = await who.via(transport);
      await using stranger = await carol.via(transport);
      const refused = stranger.call("stopAgentTurn", { message_id: id });
      expect((await failure(refused)).code).toBe("forbidden");
      await caller.call("stopAgentTurn", { message_id: id });
      expect((await answerTo(reader, trigger)).turn?.status).toBe("stopped");
    }
    await expectNoTurns(chat);
  });

  test("answers not_found for a message without a turn, and forbidden to outsiders", async () => {
    await using group = await agentGroup();
    const { chat } = group;
    const { message } = await startAnswer(group);
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
  test("answers the same message again in a new message, without the old answer in the context", async () => {
    await using group = await agentGroup();
    const { chat, key, reader, ask, agent } = group;
    sharedProvider.respond(key, fails(401), answers("Better."), answers("Best."));
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
    for (const request of sharedProvider.calls(key).slice(1)) {
      expect(bodyOf({ request }).messages).toEqual([
        { role: "user", content: `${bob.username}: @${agent} hello` },
      ]);
    }
  });

  test("is a conflict while the turn runs and after the agent has left", async () => {
    await using group = await agentGroup();
    const { chat, agent } = group;
    const { trigger, call, message } = await startAnswer(group);
    await using caller = await alice.via(transport);
    const input = { message_id: message.id };
    expect(await outcome(caller.call("retryAgentTurn", input))).toBe("conflict");
    await finish(call, "lo");
    await answerTo(group.reader, trigger);
    await alice.call("removeGroupAgent", { chat_id: chat.id, agent_username: agent });
    expect(await outcome(caller.call("retryAgentTurn", input))).toBe("conflict");
    await expectNoTurns(chat);
  });

  test("of an answer to a deleted message is not_found", async () => {
    await using group = await agentGroup();
    const { chat, key, reader, ask } = group;
    sharedProvider.respond(key, answers("Yes?"));
    const trigger = await ask("hello");
    const { id } = await answerTo(reader, trigger);
    await bob.call("deleteMessages", { chat_id: chat.id, message_ids: [trigger.id] });
    await using caller = await alice.via(transport);
    expect(await outcome(caller.call("retryAgentTurn", { message_id: id }))).toBe("not_found");
    await expectNoTurns(chat);
  });

  test("is allowed to the agent's owner, the asker and the group's admin", async () => {
    await using group = await agentGroup();
    const { key, reader } = group;
    const chat = await groupOf(dave, alice, bob, carol);
    await alice.call("addGroupAgent", { chat_id: chat.id, agent_username: group.agent });
    sharedProvider.respond(key, answers("Yes?"));
    const { id } = await answerTo(reader, await say(bob, chat, `@${group.agent} hello`));
    await using stranger = await carol.via(transport);
    const refused = stranger.call("retryAgentTurn", { message_id: id });
    expect((await failure(refused)).code).toBe("forbidden");
    for (const [index, who] of [alice, bob, dave].entries()) {
      await using caller = await who.via(transport);
      await caller.call("retryAgentTurn", { message_id: id });
      const answersSeen = () => reader.eventsNamed("events.messageComplete").length === index + 2;
      await reader.until(answersSeen, "another answer");
    }
  });
});

describe.each(transports)("stopChatAgents over %s", (transport) => {
  test("stops running turns, drops waiting ones and returns their numbers", async () => {
    await using group = await agentGroup();
    const { chat, key, reader, ask, agent } = group;
    const gpt = agentOf(alice, "gpt");
    const other = await newKey(alice, "gpt");
    await alice.call("addGroupAgent", { chat_id: chat.id, agent_username: gpt, always_on: true });
    const trigger = await ask("hello");
    const calls = [await sharedProvider.nextCall(key), await sharedProvider.nextCall(other)];
    await calls[0]?.sendText("Hel");
    const message = await replyTo(reader, trigger, agent);
    await reader.event("events.messageDelta", ({ id }) => id === message.id);
    await ask("one");
    await ask("two");
    await using caller = await carol.via(transport);
    expect(await caller.call("stopChatAgents", { chat_id: chat.id })).toEqual({
      stopped: 2,
      cancelled: 4,
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
    sharedProvider.respond(key, answers("Again."));
    sharedProvider.respond(other, answers("Me too."));
    expect((await answerTo(reader, await ask("again"), agent)).content).toBe("Again.");
  });

  test("does not affect other conversations", async () => {
    await using group = await agentGroup();
    const { trigger, call } = await startAnswer(group);
    const elsewhere = await groupOf(alice, carol, { username: group.agent });
    await using caller = await alice.via(transport);
    await caller.call("stopChatAgents", { chat_id: elsewhere.id });
    await finish(call, "lo");
    expect(await answerTo(group.reader, trigger)).toMatchObject({
      content: "Hello",
      turn: { status: "complete" },
    });
  });
});

describe("while an answer streams", () => {
  /** The answer is final with its text so far, and the connection to the provider is closed. */
  async function expectStopped(reader: Socket, trigger: Message, call: PendingCall) {
    await call.request.closed;
    const final = await answerTo(reader, trigger);
    expect(final).toMatchObject({ content: "Hel", turn: { status: "stopped", error: null } });
    expect(final.finalized_at).toMatch(TIMESTAMP);
    await typingEnded(reader, { id: trigger.conversation_id });
    return final;
  }

  test("deleting it stops the turn first", async () => {
    await using group = await agentGroup();
    const { chat, key, reader, ask } = group;
    const { trigger, call, message } = await startAnswer(group);
    const { seq } = await ask("and then?");
    await alice.call("deleteMessages", { chat_id: chat.id, message_ids: [message.id] });
    const eventAt = (at: number) => reader.events.find((frame) => frame.at?.seq === at);
    await until(() => eventAt(seq + 2), "the reader receives the deletion");
    const deletion = {
      method: "events.messageDeleted",
      params: { conversation_id: chat.id, ids: [message.id] },
    } as const;
    expect(eventAt(seq + 2)).toMatchObject(deletion);
    // In the log, which another node may read first, the end of a deleted answer is its deletion.
    if (onSeveralNodes && eventAt(seq + 1)?.method === deletion.method) {
      expect(eventAt(seq + 1)).toMatchObject(deletion);
      await call.request.closed;
    } else {
      expect((await expectStopped(reader, trigger, call)).version).toBe(seq + 1);
    }
    const gone = bob.call("getMessage", { message_id: message.id });
    expect((await failure(gone)).code).toBe("not_found");
    // The waiting turn runs next.
    const next = await sharedProvider.nextCall(key);
    expect(lastText(next)).toContain("and then?");
    expect(JSON.stringify(bodyOf(next))).not.toContain("Hel");
  });

  test("hiding it does not stop it for the others", async () => {
    await using group = await agentGroup();
    const { chat, reader } = group;
    const { trigger, call, message } = await startAnswer(group);
    await carol.call("deleteMessagesForMe", { chat_id: chat.id, message_ids: [message.id] });
    await finish(call, "lo");
    expect((await answerTo(reader, trigger)).content).toBe("Hello");
    const hidden = carol.call("getMessage", { message_id: message.id });
    expect((await failure(hidden)).code).toBe("not_found");
  });

  test("its owner's leaving stops it and keeps its text", async () => {
    await using group = await agentGroup();
    const { chat, reader, ask } = group;
    const { trigger, call } = await startAnswer(group);
    await ask("and then?");
    await alice.call("leaveChat", { chat_id: chat.id });
    await expectStopped(reader, trigger, call);
    const updated = await reader.event("events.conversationUpdated");
    expect(updated.params.participants).toEqual([bob.account, carol.account]);
    await expectNoTurns(chat);
    expect(sharedProvider.calls(group.key)).toHaveLength(1);
  });

  test("the removal of the agent stops it and keeps its text", async () => {
    for (const how of ["by its owner", "by the admin"]) {
      await using group = await agentGroup();
      const { chat, agent, reader } = group;
      const { trigger, call } = await startAnswer(group);
      if (how === "by its owner") {
        await alice.call("removeGroupAgent", { chat_id: chat.id, agent_username: agent });
      } else {
        await alice.call("removeChatMember", { chat_id: chat.id, username: agent });
      }
      await expectStopped(reader, trigger, call);
      await expectNoTurns(chat);
    }
  });

  test("the removal of the agent's owner stops it too", async () => {
    await using group = await agentGroup();
    const chat = await groupOf(carol, alice, bob);
    await alice.call("addGroupAgent", { chat_id: chat.id, agent_username: group.agent });
    // A node that has just begun to follow a conversation may miss deltas.
    await using reader = await bob.connect();
    const trigger = await say(bob, chat, `@${group.agent} hello`);
    const call = await sharedProvider.nextCall(group.key);
    await call.sendText("Hel");
    const message = await replyTo(reader, trigger);
    await reader.event("events.messageDelta", ({ id }) => id === message.id);
    await carol.call("removeChatMember", { chat_id: chat.id, username: alice.username });
    await expectStopped(reader, trigger, call);
  });

  test("its asker's leaving does not stop it", async () => {
    await using group = await agentGroup();
    const { chat, reader } = group;
    const { trigger, call } = await startAnswer(group, "Hel", carol);
    await carol.call("leaveChat", { chat_id: chat.id });
    await finish(call, "lo");
    expect(await answerTo(reader, trigger)).toMatchObject({
      content: "Hello",
      turn: { status: "complete" },
    });
  });

  test("deleting the question does not stop it", async () => {
    await using group = await agentGroup();
    const { chat, reader } = group;
    const { trigger, call } = await startAnswer(group);
    await bob.call("deleteMessages", { chat_id: chat.id, message_ids: [trigger.id] });
    await finish(call, "lo");
    expect((await answerTo(reader, trigger)).content).toBe("Hello");
  });

  test("removing the key does not stop it, but the next turn fails", async () => {
    await using group = await agentGroup();
    const { reader, ask, key } = group;
    const { trigger, call } = await startAnswer(group);
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
    expect(sharedProvider.calls(key)).toHaveLength(1);
  });

  test("replacing the key does not stop it, and the next turn uses the new key", async () => {
    await using group = await agentGroup();
    const { reader, ask, key } = group;
    const { trigger, call } = await startAnswer(group);
    const waiting = await ask("and then?");
    const other = await newKey(alice);
    sharedProvider.respond(other, answers("With the new one."));
    await finish(call, "lo");
    expect((await answerTo(reader, trigger)).content).toBe("Hello");
    expect((await answerTo(reader, waiting)).content).toBe("With the new one.");
    expect(sharedProvider.calls(key)).toHaveLength(1);
  });

  test("a reaction is counted and kept", async () => {
    await using group = await agentGroup();
    const { trigger, call, message } = await startAnswer(group);
    await bob.call("setMessageReaction", { message_id: message.id, emoji: "👍" });
    await finish(call, "lo");
    expect(await answerTo(group.reader, trigger)).toMatchObject({
      content: "Hello",
      reactions: [{ emoji: "👍", count: 1, reacted: false }],
      version: trigger.seq + 3,
    });
  });

  test("nobody can edit it, not even the agent's owner", async () => {
    await using group = await agentGroup();
    const { message } = await startAnswer(group);
    const edit = alice.call("editMessage", { message_id: message.id, content: "mine" });
    expect((await failure(edit)).code).toBe("forbidden");
    expect(await contentOf(message.id)).toBe("Hel");
  });
});
