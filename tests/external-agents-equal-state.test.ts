import { expect, test } from "bun:test";
import { answerTo, groupOf, people, say } from "@parley/testkit/client.ts";
import { claim, externalAgent } from "@parley/testkit/external-agents.ts";
import { Watcher } from "@parley/testkit/model.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";

const server = await sharedServer();
const [ann, bob] = await people(server.url, "ann", "bob");

test("with an external agent, initial fetch and events equal a fresh fetch, for people and for the agent", async () => {
  const { agent } = await externalAgent(ann);
  const watchers = await Promise.all([ann, bob, agent].map((each) => Watcher.start(each)));
  const [, reader] = watchers as [Watcher, Watcher, Watcher];
  const check = async () => {
    for (const watcher of watchers) await watcher.check();
  };
  try {
    // The agent's own clients learn of the conversation that it is added to.
    const chat = await groupOf(ann, bob);
    await ann.call("addGroupAgent", { chat_id: chat.id, agent_username: agent.username });
    await check();
    const asked = await say(bob, chat, `@${agent.username} hello`);
    const { turn_id, answer_id } = await claim(agent);
    await check();
    await agent.call("writeTurn", { turn_id, delta: "Hel🦜", offset: 0 });
    await check();
    await agent.call("finishTurn", { turn_id, status: "complete" });
    expect((await answerTo(reader.socket, asked)).id).toBe(answer_id);
    await check();
    await agent.call("editMessage", { message_id: answer_id, content: `Hello @${bob.username}` });
    await agent.call("addReaction", { message_id: asked.id, emoji: "👍" });
    await agent.call("readChat", { chat_id: chat.id, seq: asked.seq });
    const own = await say(agent, chat, "unasked");
    await check();
    await agent.call("deleteMessages", { chat_id: chat.id, message_ids: [own.id] });
    await say(bob, chat, `@${agent.username} again`);
    const second = await claim(agent);
    await agent.call("writeTurn", { turn_id: second.turn_id, delta: "Hel", offset: 0 });
    await ann.call("stopAgentTurn", { message_id: second.answer_id });
    await check();
    await ann.call("removeGroupAgent", { chat_id: chat.id, agent_username: agent.username });
    await check();
  } finally {
    for (const watcher of watchers) await watcher[Symbol.asyncDispose]();
  }
});
