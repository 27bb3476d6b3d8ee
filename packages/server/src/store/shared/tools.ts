import type { ToolServerRecord } from "../tools.ts";

/** Selects `ToolServerRow`s. */
export const TOOL_SERVER = `SELECT id, owner_id, name, url, secrets, status, error, tools,
  contacted_at, created_at FROM tool_servers`;

export const TOOL_GRANTS = "SELECT server_id, tool, policy, fingerprint FROM tool_grants";

export type ToolServerRow = Omit<ToolServerRecord, "tools"> & { tools: string };

export const toToolServer = ({ tools, ...row }: ToolServerRow): ToolServerRecord => ({
  ...row,
  tools: JSON.parse(tools),
});
