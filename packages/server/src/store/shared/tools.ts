import type { ToolServerRecord } from "../tools.ts";

/** Selects `ToolServerRow`s. */
export const TOOL_SERVER = `SELECT id, owner_id, name, url, secrets, status, error, tools,
  contacted_at, created_at FROM tool_servers`;

export const TOOL_SERVERS = `${TOOL_SERVER} WHERE owner_id = $1 ORDER BY created_at, id`;

export const TOOL_GRANTS = `SELECT server_id, tool, policy, fingerprint FROM tool_grants
  WHERE agent_id = $1 ORDER BY position, server_id, tool`;

export const INSERT_TOOL_SERVER = `INSERT INTO tool_servers
    (id, owner_id, name, url, secrets, created_at)
  VALUES ($1, $2, $3, $4, $5, $6)`;

export const SET_TOOL_SERVER_STATE = `UPDATE tool_servers
  SET status = $2, error = $3, tools = coalesce($4, tools), contacted_at = $5 WHERE id = $1`;

export const REPLACE_TOOL_SECRETS =
  "UPDATE tool_servers SET secrets = $3 WHERE id = $1 AND secrets IS NOT DISTINCT FROM $2";

export type ToolServerRow = Omit<ToolServerRecord, "tools"> & { tools: string };

export const toToolServer = ({ tools, ...row }: ToolServerRow): ToolServerRecord => ({
  ...row,
  tools: JSON.parse(tools),
});
