import { SEALED_TOOL_SECRETS } from "../shared/sealed-texts.ts";
import { TOOL_GRANTS, TOOL_SERVER, type ToolServerRow, toToolServer } from "../shared/tools.ts";
import type { SealedToolSecrets, ToolGrantRecord, ToolReads, ToolWrites } from "../tools.ts";
import type { Connection } from "./connection.ts";

export function toolReads(db: Connection): ToolReads {
  const byOwner = db.query<ToolServerRow>(
    `${TOOL_SERVER} WHERE owner_id = ? ORDER BY created_at, id`,
  );
  const byId = db.query<ToolServerRow>(`${TOOL_SERVER} WHERE id = ?`);
  const grants = db.query<ToolGrantRecord>(
    `${TOOL_GRANTS} WHERE agent_id = ? ORDER BY server_id, tool`,
  );
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
  const insert = db.change(
    `INSERT INTO tool_servers (id, owner_id, name, url, secrets, created_at)
     VALUES (?, ?, ?, ?, ?, ?)`,
  );
  const setState = db.change(
    `UPDATE tool_servers SET status = ?2, error = ?3, tools = coalesce(?4, tools),
       contacted_at = ?5 WHERE id = ?1`,
  );
  const replace = db.change("UPDATE tool_servers SET secrets = ?3 WHERE id = ?1 AND secrets IS ?2");
  const remove = db.change("DELETE FROM tool_servers WHERE id = ?");
  const removeGrants = db.change("DELETE FROM tool_grants WHERE server_id = ?");
  const clearGrants = db.change("DELETE FROM tool_grants WHERE agent_id = ?");
  const grant = db.change(
    `INSERT INTO tool_grants (agent_id, server_id, tool, policy, fingerprint)
     VALUES (?, ?, ?, ?, ?)`,
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
      for (const { server_id, tool, policy, fingerprint } of grants) {
        grant.run(agentId, server_id, tool, policy, fingerprint);
      }
    },
  };
}
