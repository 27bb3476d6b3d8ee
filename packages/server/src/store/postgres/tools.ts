import { SEALED_TOOL_SECRETS } from "../sealed-texts.ts";
import {
  INSERT_TOOL_SERVER,
  REPLACE_TOOL_SECRETS,
  SET_TOOL_SERVER_STATE,
  TOOL_GRANTS,
  TOOL_SERVER,
  TOOL_SERVERS,
  type ToolServerRow,
  toToolServer,
} from "../shared/tools.ts";
import type { SealedToolSecrets, ToolGrantRecord, ToolReads, ToolWrites } from "../tools.ts";
import type { Methods } from "./unit.ts";

export const toolReads: Methods<keyof ToolReads> = {
  toolServers: async (unit, ownerId) =>
    (await unit.all<ToolServerRow>(TOOL_SERVERS, ownerId)).map(toToolServer),
  toolServer: async (unit, id) => {
    const row = await unit.get<ToolServerRow>(`${TOOL_SERVER} WHERE id = $1`, id);
    return row && toToolServer(row);
  },
  toolGrants: (unit, agentId) => unit.all<ToolGrantRecord>(TOOL_GRANTS, agentId),
  sealedToolSecrets: (unit) => unit.all<SealedToolSecrets>(SEALED_TOOL_SECRETS),
};

const serverWrites: Methods<Exclude<keyof ToolWrites, "setToolGrants">> = {
  insertToolServer: async (unit, { id, owner_id, name, url, secrets, created_at }, most) => {
    await unit.ownRow("accounts", owner_id);
    const taken = await unit.all<{ name: string }>(
      "SELECT name FROM tool_servers WHERE owner_id = $1",
      owner_id,
    );
    if (taken.length >= most) return "full";
    if (taken.some((each) => each.name === name)) return "taken";
    await unit.write(INSERT_TOOL_SERVER, id, owner_id, name, url, secrets, created_at);
    return "added";
  },
  setToolServerState: async (unit, id, { status, error, tools, at }) => {
    const stored = tools ? JSON.stringify(tools) : null;
    await unit.write(SET_TOOL_SERVER_STATE, id, status, error, stored, at);
  },
  replaceToolSecrets: async (unit, { id, secrets: from }, to) => {
    const { count } = await unit.write(REPLACE_TOOL_SECRETS, id, from, to);
    return count > 0;
  },
  renameToolServer: async (unit, { id, owner_id }, name) => {
    await unit.ownRow("accounts", owner_id);
    const taken = await unit.get<{ id: string }>(
      "SELECT id FROM tool_servers WHERE owner_id = $1 AND name = $2 AND id <> $3",
      owner_id,
      name,
      id,
    );
    if (taken) return false;
    await unit.write("UPDATE tool_servers SET name = $2 WHERE id = $1", id, name);
    return true;
  },
  deleteToolServer: async (unit, id) => {
    await unit.write("DELETE FROM tool_servers WHERE id = $1", id);
    await unit.write("DELETE FROM tool_grants WHERE server_id = $1", id);
  },
};

export const toolWrites: Methods<keyof ToolWrites> = {
  ...serverWrites,
  setToolGrants: async (unit, agentId, grants) => {
    await unit.ownRow("accounts", agentId);
    await unit.write("DELETE FROM tool_grants WHERE agent_id = $1", agentId);
    await unit.write(
      `INSERT INTO tool_grants (agent_id, server_id, tool, policy, fingerprint, position)
       SELECT $1, server_id, tool, policy, fingerprint, position
       FROM jsonb_to_recordset($2::text::jsonb)
         AS g (server_id text, tool text, policy text, fingerprint text, position integer)`,
      agentId,
      JSON.stringify(grants.map((grant, position) => ({ ...grant, position }))),
    );
  },
};
