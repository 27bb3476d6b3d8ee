import { expect, test } from "bun:test";
import { join } from "node:path";
import { answerTo, say, signUp } from "@parley/testkit/client.ts";
import { externalAgent } from "@parley/testkit/external-agents.ts";
import { sharedServer } from "@parley/testkit/shared-server.ts";
import { until } from "@parley/testkit/until.ts";

/** The examples of external agents, as their README says to run them. */

const EXAMPLES = join(import.meta.dir, "../examples/agents");
const server = await sharedServer();
const alice = await signUp(server.url, "alice");

/** Runs a program as an agent, and asks it. */
async function answersOf(command: string[], ...questions: string[]) {
  const { agent, chat } = await externalAgent(alice);
  const child = Bun.spawn(command, {
    cwd: EXAMPLES,
    env: {
      ...process.env,
      PARLEY_URL: server.url,
      AGENT_TOKEN: agent.token,
      no_proxy: "127.0.0.1,localhost",
    },
    stdout: "ignore",
    stderr: "inherit",
  });
  await using reader = await alice.connect();
  const isOnline = async () => {
    const { items } = await alice.call("getMyAgents");
    return items.some(({ username, online }) => username === agent.username && online);
  };
  try {
    // A turn waits only a few seconds for a program, which may take longer to start.
    await until(isOnline, "the program is connected");
    const found = [];
    for (const question of questions) {
      const asked = await say(alice, chat, question);
      const { content, turn } = await answerTo(reader, asked);
      found.push({ content, status: turn?.status });
    }
    return found;
  } finally {
    child.kill();
    await child.exited;
  }
}

const bun = process.execPath;
const complete = (content: string) => ({ content, status: "complete" }) as const;

test("dice.ts rolls dice in less than 40 lines, and says why it cannot", async () => {
  const source = await Bun.file(join(EXAMPLES, "dice.ts")).text();
  expect(source.split("\n").length).toBeLessThan(40);
  const found = await answersOf([bun, "dice.ts"], "2d6, please", "1d1");
  expect(found).toEqual([
    complete(expect.stringMatching(/^(🎲 [1-6] ){2}= \*\*\d+\*\*$/) as unknown as string),
    { content: "A die needs at least two sides.", status: "failed" },
  ]);
});

test.skipIf(!Bun.which("jq") || !Bun.which("curl"))("curl.sh counts words", async () => {
  const found = await answersOf(["sh", "curl.sh"], "one two three", 'a "quoted" word\nand another');
  expect(found).toEqual([complete("3 words."), complete("5 words.")]);
});

test("bridge.ts answers with what a command prints", async () => {
  const found = await answersOf([bun, "bridge.ts", "tr", "a-z", "A-Z"], "grüße, 🙂!", "again");
  expect(found).toEqual([complete("GRüßE, 🙂!"), complete("AGAIN")]);
});

test("bridge.ts answers with what an agent of the Agent Client Protocol says", async () => {
  const acp = join(import.meta.dir, "fixtures/acp-agent.ts");
  const found = await answersOf([bun, "bridge.ts", "--acp", bun, acp], "hello", "again");
  expect(found).toEqual([
    complete("1: you said «hello», and permission was cancelled."),
    complete("2: you said «again», and permission was cancelled."),
  ]);
});
