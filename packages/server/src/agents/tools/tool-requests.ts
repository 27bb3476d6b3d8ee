import { isExternal } from "../../rules/agents.ts";
import { writtenName } from "../../rules/tool-names.ts";
import type { Store } from "../../store/store.ts";
import { type OfferedTool, offeredTools } from "./offered.ts";
import type { ToolServers } from "./servers.ts";

/** How long somebody who pressed a button waits until tool servers have answered. */
const OFFER_MS = 10_000;

export type ToolRequests = ReturnType<typeof createToolRequests>;

export interface RequestedTool extends OfferedTool {
  readonly owner_id: number;
}

/** Finds tools that people ask for with components of an agent's messages. */
export const createToolRequests = (store: Pick<Store, "read">, toolServers: ToolServers) => ({
  /** The tool that the agent may use by this name; null if it has none. */
  async find(agentId: number, tool: string): Promise<RequestedTool | null> {
    const agent = await store.read((tx) => tx.agent(agentId));
    // Programs have their own ways to act.
    if (!agent || isExternal(agent.account)) return null;
    const offered = await offeredTools(toolServers, agent, AbortSignal.timeout(OFFER_MS));
    const all = [...offered.values()];
    // Models know tools by their function names.
    const found =
      offered.get(tool) ??
      all.find((each) => writtenName(each) === tool) ??
      all.find((each) => each.tool === tool);
    return found ? { ...found, owner_id: agent.owner.id } : null;
  },
});
