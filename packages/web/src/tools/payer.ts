import { useAgents } from "@parley/client/react";
import type { Account } from "@parley/protocol";
import { isProvided } from "../agents/keys.ts";

/** Who pays for what an agent writes after a decision, as a sentence. */
export function usePayer(agent: Account, owner: string): string {
  const mine = useAgents().find(({ username }) => username === agent.username);
  if (mine && isProvided(mine)) return "This server pays for the answer that follows.";
  return owner === "you"
    ? "You pay for the answer that follows."
    : `${owner} pays for the answer that follows.`;
}
