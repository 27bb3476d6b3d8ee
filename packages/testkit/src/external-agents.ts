import type { ClaimedTurn, Conversation } from "@parley/protocol";
import { Person } from "./client.ts";

let count = 0;

export interface ExternalAgent {
  /** The agent, which calls with a token of its own. */
  readonly agent: Person;
  readonly token_id: string;
  /** The owner's conversation with it. */
  readonly chat: Conversation;
}

/** Creates an external agent of a person, with a token and a conversation of the two. */
export async function externalAgent(owner: Person): Promise<ExternalAgent> {
  const name = `program-${++count}`;
  const { username } = await owner.call("createAgent", { name, kind: "external" });
  const { id, token } = await owner.call("createAgentToken", { agent_username: username });
  const account = await owner.call("getUser", { username });
  const chat = await owner.call("startChat", { usernames: [username] });
  return { agent: new Person(owner.url, token, account), token_id: id, chat };
}

/** Waits for a turn of the agent and claims it. */
export async function claim(
  agent: Pick<Person, "call">,
  input: { turn_id?: number } = {},
): Promise<ClaimedTurn> {
  const turn = await agent.call("claimTurn", { wait_seconds: 30, ...input });
  if (!turn) throw new Error("there is no turn to claim");
  return turn;
}

/** Writes the whole answer of a claimed turn, and ends it. */
export async function complete(
  agent: Pick<Person, "call">,
  { turn_id }: { turn_id: number },
  text: string,
): Promise<void> {
  await agent.call("writeTurn", { turn_id, delta: text, offset: 0 });
  await agent.call("finishTurn", { turn_id, status: "complete" });
}
