import { isExternal } from "../../rules/agents.ts";
import type { ToolDefinition } from "../../rules/model-content.ts";
import { plainName } from "../../rules/quoting.ts";
import { functionName, writtenName } from "../../rules/tool-names.ts";
import type { AgentRecord } from "../../store/agents.ts";
import type { Store } from "../../store/store.ts";
import { builtInTools } from "./built-in.ts";
import type { UsableTool } from "./granted-tools.ts";
import type { ToolServers } from "./servers.ts";

export interface OfferedTool extends UsableTool {
  /** The name by which the model calls it. */
  readonly name: string;
}

/** Tools by the names by which models call them. */
export type OfferedTools = ReadonlyMap<string, OfferedTool>;

export async function offeredTools(servers: ToolServers, agent: AgentRecord, signal: AbortSignal) {
  const granted = await servers.granted(agent, signal);
  const tools = [...builtInTools(), ...granted].map((tool) => ({
    ...tool,
    // Shown to people, and chosen by the server.
    title: plainName(tool.title || tool.tool),
    name: functionName(tool),
  }));
  return new Map(tools.map((tool) => [tool.name, tool]));
}

export const definitionOf = ({ name, description, input_schema }: OfferedTool): ToolDefinition => ({
  name,
  description,
  input_schema,
});

/** How long somebody who pressed a button waits until tool servers have answered. */
const OFFER_MS = 10_000;

export type ToolRequests = ReturnType<typeof createToolRequests>;

/** Finds tools that people ask for with components of an agent's messages. */
export const createToolRequests = (store: Pick<Store, "read">, toolServers: ToolServers) => ({
  /** The tool that the agent may use by this name; null if it has none. */
  async find(agentId: number, tool: string) {
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
