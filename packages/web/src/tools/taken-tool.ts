import { useAgents } from "@parley/client/react";
import type { Account, ToolCall } from "@parley/protocol";

/** The name of the built-in tools' server. They need no grant. */
const BUILT_IN = "parley";

/** Why a call of one's own agent can only be rejected: it may not use the tool any more. Otherwise null. */
export function useTakenTool({ username }: Account, { server, tool }: ToolCall): string | null {
  const agent = useAgents().find((each) => each.username === username);
  if (!agent || server === BUILT_IN) return null;
  return agent.tools.some((grant) => grant.tool === tool)
    ? null
    : "The agent may no longer use this tool: the call can only be rejected";
}
