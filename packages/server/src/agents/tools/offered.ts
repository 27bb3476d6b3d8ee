import type { ToolDefinition } from "../../rules/model-content.ts";
import { plainName } from "../../rules/quoting.ts";
import { functionName } from "../../rules/tool-names.ts";
import type { AgentRecord } from "../../store/agents.ts";
import { builtInTools } from "./built-in.ts";
import type { GrantedTool, ToolServers } from "./servers.ts";

/** A tool that a turn may use: one of a server, or a built-in one. */
export interface OfferedTool extends Omit<GrantedTool, "server_id" | "fingerprint"> {
  /** Null for built-in tools. */
  readonly server_id: string | null;
  /** Null for built-in tools. */
  readonly fingerprint: string | null;
  /** The name by which the model calls it. */
  readonly name: string;
}

/** Tools by the names by which models call them. */
export type OfferedTools = ReadonlyMap<string, OfferedTool>;

/** The tools that an agent may use now. */
export async function offeredTools(
  servers: ToolServers,
  agent: AgentRecord,
  signal: AbortSignal,
): Promise<OfferedTools> {
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
