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
import type { Connection } from "./connection.ts";

export function toolReads(db: Connection): ToolReads {
  const byOwner = db.query<ToolServerRow>(TOOL_SERVERS);
  const byId = db.query<ToolServerRow>(`${TOOL_SERVER} WHERE id = ?`);
  const grants = db.query<ToolGrantRecord>(TOOL_GRANTS);
  const sealed = db.query<SealedToolSecrets>(SEALED_TOOL_SECRETS);
  return {
    toolServers: (ownerId) => byOwner.all(ownerId).map(toToolServer),
    toolServer: (id) => {
      const row = byId.get(id);
      return row && toToolServer(row);
    },
    toolGrants: (agentId) => grants.all(agentId),
    sealedToolSecrets: () => sealed.all(),
  };
}

export function toolWrites(db: Connection): ToolWrites {
  const names = db.query<{ id: string; name: string }>(
    "SELECT id, name FROM tool_servers WHERE owner_id = ?",
  );
  const rename = db.change("UPDATE tool_servers SET name = ?2 WHERE id = ?1");
  const insert = db.change(INSERT_TOOL_SERVER);
  const setState = db.change(SET_TOOL_SERVER_STATE);
  const replace = db.change(REPLACE_TOOL_SECRETS);
  const remove = db.change("DELETE FROM tool_servers WHERE id = ?");
  const removeGrants = db.change("DELETE FROM tool_grants WHERE server_id = ?");
  const clearGrants = db.change("DELETE FROM tool_grants WHERE agent_id = ?");
  const grant = db.change(
    `INSERT INTO tool_grants (agent_id, server_id, tool, policy, fingerprint, position)
     VALUES (?, ?, ?, ?, ?, ?)`,
  );
  return {
    insertToolServer: ({ id, owner_id, name, url, secrets, created_at }, most) => {
      const taken = names.all(owner_id);
      if (taken.length >= most) return "full";
      if (taken.some((each) => each.name === name)) return "taken";
      insert.run(id, owner_id, name, url, secrets, created_at);
      return "added";
    },
    setToolServerState: (id, { status, error, tools, at }) =>
      void setState.run(id, status, error, tools ? JSON.stringify(tools) : null, at),
    replaceToolSecrets: ({ id, secrets: from }, to) => replace.run(id, from, to).changes > 0,
    renameToolServer: ({ id, owner_id }, name) => {
      if (names.all(owner_id).some((each) => each.name === name && each.id !== id)) return false;
      rename.run(id, name);
      return true;
    },
    deleteToolServer: (id) => {
      removeGrants.run(id);
      remove.run(id);
    },
    setToolGrants: (agentId, grants) => {
      clearGrants.run(agentId);
      for (const [position, { server_id, tool, policy, fingerprint }] of grants.entries()) {
        grant.run(agentId, server_id, tool, policy, fingerprint, position);
      }
    },
  };
}
