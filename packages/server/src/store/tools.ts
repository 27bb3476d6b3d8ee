import type { ToolGrant, ToolServer } from "@parley/protocol";
import type { Awaitable } from "./awaitable.ts";

/** The tool servers that people added, and the tools that their agents may use. */
export interface ToolReads {
  /** The servers of a person, ordered by creation. */
  toolServers(ownerId: number): Awaitable<ToolServerRecord[]>;
  toolServer(id: string): Awaitable<ToolServerRecord | null>;
  /** The grants of an agent, ordered by server and tool. */
  toolGrants(agentId: number): Awaitable<ToolGrantRecord[]>;
  /** The sealed secrets of all servers, for the rotation of the key that seals them. */
  sealedToolSecrets(): Awaitable<SealedToolSecrets[]>;
}

export interface ToolWrites {
  /**
   * Adds a server unless its owner has `most` of them (`full`) or one with that name (`taken`). Units that
   * add servers of the same owner take effect one after another, on all nodes.
   */
  insertToolServer(server: NewToolServer, most: number): Awaitable<"added" | "full" | "taken">;
  /** Stores the outcome of a contact with a server. Without `tools`, the known ones stay. */
  setToolServerState(id: string, state: ToolServerState): Awaitable<void>;
  /** Replaces the sealed secrets. Returns false if they were changed since they were read. */
  replaceToolSecrets(server: KnownToolSecrets, secrets: string | null): Awaitable<boolean>;
  /** Returns false, and changes nothing, when another server of its owner has the name. */
  renameToolServer(server: OwnedToolServer, name: string): Awaitable<boolean>;
  /** Deletes a server and all grants of its tools. */
  deleteToolServer(id: string): Awaitable<void>;
  /** Replaces all grants of an agent. No two of them may be for the same tool. */
  setToolGrants(agentId: number, grants: readonly ToolGrantRecord[]): Awaitable<void>;
}

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

export interface SealedToolSecrets {
  readonly id: string;
  readonly owner_id: number;
  readonly secrets: string;
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
