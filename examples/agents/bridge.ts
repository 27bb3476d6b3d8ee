import { spawn } from "node:child_process";
import { once } from "node:events";
import { type AgentTurn, createAgent } from "@parley/client";
import { AcpAgent } from "./acp.ts";

/**
 * Lets a program on this machine answer as an external agent. Run with PARLEY_URL and AGENT_TOKEN:
 *
 *   bridge.ts command …         starts the command for each turn: the message is its standard
 *                               input, what it prints is the answer
 *   bridge.ts --acp command …   starts the command once, and speaks the Agent Client Protocol with
 *                               it: one session for each conversation
 */

const { PARLEY_URL = "http://localhost:8080", AGENT_TOKEN = "" } = process.env;
const isAcp = process.argv[2] === "--acp";
const [command, ...args] = process.argv.slice(isAcp ? 3 : 2);
if (!command) {
  console.error("usage: bridge.ts [--acp] command …");
  process.exit(2);
}
// The command acts for people in the conversation: it does not get the token.
const { AGENT_TOKEN: _, ...env } = process.env;
const acp = isAcp ? await AcpAgent.start(command, args, env) : null;

const agent = createAgent({
  url: PARLEY_URL,
  token: AGENT_TOKEN,
  onTurn: (turn) => (acp ? acp.answer(turn) : run(turn, command, args)),
  onError: (error) => console.error(error),
});
console.log("The bridge is running.");
process.on("SIGTERM", () => {
  acp?.stop();
  void agent.close();
});
await agent.closed;

async function run(turn: AgentTurn, file: string, given: string[]): Promise<void> {
  const child = spawn(file, given, {
    env,
    signal: turn.signal,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const exited = once(child, "close");
  child.stdin.on("error", () => {
    // The command does not read its input.
  });
  child.stdin.end(turn.message?.content ?? "");
  child.stdout.setEncoding("utf8");
  for await (const text of child.stdout) await turn.write(text as string);
  const [code] = await exited;
  if (code !== 0) throw new Error(`${file} exited with ${code}`);
}
