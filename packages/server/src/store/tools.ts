import type { ToolGrant, ToolServer } from "@parley/protocol";
import { SEALED, type SealedToolSecrets } from "./sealed-texts.ts";
import { json, raw, reader, type Sql, sql } from "./sql.ts";

/** The tool servers that people added, and the tools that their agents may use. */
export const toolReads = {
  /** The servers of a person, ordered by creation. */
  toolServers: (db: Sql, ownerId: number) =>
    db.allAs(readServer)`${TOOL_SERVERS} WHERE owner_id = ${ownerId} ORDER BY created_at, id`,
  toolServer: (db: Sql, id: string) => db.getAs(readServer)`${TOOL_SERVERS} WHERE id = ${id}`,
  /** The grants of an agent, ordered by server and tool. */
  toolGrants: (db: Sql, agentId: number) =>
    db.all<ToolGrantRecord>`
      SELECT server_id, tool, policy, fingerprint FROM tool_grants
      WHERE agent_id = ${agentId} ORDER BY position, server_id, tool`,
  /** The sealed secrets of all servers, for the rotation of the key that seals them. */
  sealedToolSecrets: (db: Sql) => db.all<SealedToolSecrets>`${raw(SEALED.toolSecrets)}`,
};

export const toolWrites = {
  /**
   * Adds a server unless its owner has `most` of them (`full`) or one with that name (`taken`). Units that
   * add servers of the same owner take effect one after another, on all nodes.
   */
  async insertToolServer(db: Sql, server: NewToolServer, most: number) {
    const { owner_id, name } = server;
    await db.ownRow("accounts", owner_id);
    const others = await namesOf(db, owner_id);
    if (others.length >= most) return "full";
    if (others.some((other) => other.name === name)) return "taken";
    await db.insert("tool_servers", { ...server });
    return "added";
  },
  /**
   * Stores the outcome of a contact with a server, unless it has another address by now. Without `tools`,
   * the known ones stay.
   */
  async setToolServerState(
    db: Sql,
    { id, url }: Pick<NewToolServer, "id" | "url">,
    { status, error, tools, at }: ToolServerState,
  ): Promise<void> {
    const state = { status, error, tools: tools && JSON.stringify(tools), contacted_at: at };
    await db.update("tool_servers", { id, url }, state);
  },
  /** Replaces the sealed secrets, and the address. Returns false if the secrets were changed since they were read. */
  replaceToolSecrets: (db: Sql, server: KnownToolSecrets, secrets: string | null, url?: string) =>
    db.hasChanged`
      UPDATE tool_servers SET secrets = ${secrets}, url = coalesce(${url ?? null}, url)
      WHERE id = ${server.id} AND secrets IS NOT DISTINCT FROM ${server.secrets}`,
  /** Returns false, and changes nothing, when another server of its owner has the name. */
  async renameToolServer(db: Sql, { id, owner_id }: OwnedToolServer, name: string) {
    await db.ownRow("accounts", owner_id);
    const others = await namesOf(db, owner_id);
    if (others.some((other) => other.name === name && other.id !== id)) return false;
    await db.update("tool_servers", { id }, { name });
    return true;
  },
  /** Deletes a server and all grants of its tools. */
  async deleteToolServer(db: Sql, id: string): Promise<void> {
    await db.change`DELETE FROM tool_servers WHERE id = ${id}`;
    await db.change`DELETE FROM tool_grants WHERE server_id = ${id}`;
  },
  /** Replaces all grants of an agent. No two of them may be for the same tool. */
  async setToolGrants(db: Sql, agentId: number, grants: readonly ToolGrantRecord[]): Promise<void> {
    await db.ownRow("accounts", agentId);
    await db.remove("tool_grants", { agent_id: agentId });
    const placed = grants.map((grant, position) => ({ ...grant, position }));
    await db.change`
      INSERT INTO tool_grants (agent_id, server_id, tool, policy, fingerprint, position)
      SELECT ${agentId}, server_id, tool, policy, fingerprint, position
      FROM jsonb_to_recordset(${json(placed)}::jsonb)
        AS g (server_id text, tool text, policy text, fingerprint text, position integer)`;
  },
};

const namesOf = (db: Sql, ownerId: number) =>
  db.all<{ id: string; name: string }>`
    SELECT id, name FROM tool_servers WHERE owner_id = ${ownerId}`;

/** A tool as its server describes it. */
export interface ToolRecord {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input_schema: Readonly<Record<string, unknown>>;
  /** Changes with the description and the schema that the server sent. */
  readonly fingerprint: string;
}

export interface ToolServerState {
  readonly status: ToolServer["status"];
  readonly error: string | null;
  readonly tools?: readonly ToolRecord[];
  /** When the contact ended. */
  readonly at: number;
}

export type OwnedToolServer = Pick<NewToolServer, "id" | "owner_id">;

export type KnownToolSecrets = Pick<NewToolServer, "id" | "secrets">;

export interface NewToolServer {
  readonly id: string;
  readonly owner_id: number;
  readonly name: string;
  readonly url: string;
  /** What the server is contacted with, sealed; null: nothing. */
  readonly secrets: string | null;
  readonly created_at: number;
}

export interface ToolServerRecord extends NewToolServer {
  readonly status: ToolServer["status"];
  readonly error: string | null;
  readonly tools: readonly ToolRecord[];
  /** When the last contact ended; null before the first one. */
  readonly contacted_at: number | null;
}

export interface ToolGrantRecord extends Omit<ToolGrant, "changed"> {
  /** The fingerprint of the tool when it was granted. */
  readonly fingerprint: string;
}

const TOOL_SERVERS = sql`SELECT id, owner_id, name, url, secrets, status, error, tools,
    contacted_at, created_at FROM tool_servers`;

const readServer = reader<ToolServerRecord>({ json: ["tools"] });
