import { expect, test } from "bun:test";
import { createAgent } from "@parley/client";
import { answerTo, groupOf, Person, say, signUp } from "@parley/testkit/client.ts";
import { startCluster, type TestNode } from "@parley/testkit/cluster.ts";
import { claim, complete, externalAgent } from "@parley/testkit/external-agents.ts";
import { noRates } from "@parley/testkit/server.ts";

test("two programs with one token on two nodes answer each turn once, also when one is killed in mid-stream", async () => {
  await using cluster = await startCluster({ nodes: 2, env: noRates });
  const [one, two] = cluster.nodes as [TestNode, TestNode];
  const alice = (await signUp(one.url, "alice")).at(one.url);
  const { agent, chat } = await externalAgent(alice);
  await alice.call("setAgentLimits", { agent_username: agent.username, turns_per_minute: null });
  await using reader = await alice.connect();

  // A program that waits on one node is woken by a message to the other.
  const waiting = claim(new Person(two.url, agent.token, agent.account));
  const first = await say(alice, chat, "first");
  await complete(agent.at(one.url), await waiting, "1");
  expect((await answerTo(reader, first)).content).toBe("1");

  const handled: string[] = [];
  const program = (node: TestNode) =>
    createAgent({
      url: node.url,
      token: agent.token,
      reconnectMs: { min: 10, max: 100 },
      onTurn: async (turn) => {
        handled.push(turn.message?.id ?? "");
        for (const piece of ["a", "b", "c"]) await turn.write(piece);
      },
    });
  // A program that claims a turn at the second node, and is gone with that node in mid-stream.
  const group = await groupOf(alice, agent);
  const lost = await say(alice, group, `@${agent.username} lost`);
  const doomed = agent.at(two.url);
  const { turn_id } = await claim(doomed);
  await doomed.call("writeTurn", { turn_id, delta: "half", offset: 0 });
  const [here, there] = [program(one), program(two)];
  const chats = await Promise.all([1, 2, 3, 4].map(() => groupOf(alice, agent)));
  const ask = () => Promise.all(chats.map((each) => say(alice, each, `@${agent.username} hello`)));
  const asked = await ask();
  for (const each of asked) expect((await answerTo(reader, each)).content).toBe("abc");
  await two.kill();
  const later = await ask();
  for (const each of later) expect((await answerTo(reader, each)).content).toBe("abc");
  expect(await answerTo(reader, lost)).toMatchObject({
    content: "half",
    turn: { status: "failed", error: { code: "interrupted" } },
  });
  const triggers = [...asked, ...later].map(({ id }) => id);
  expect(handled.toSorted()).toEqual(triggers.toSorted());
  await Promise.all([here.close(), there.close()]);
});
