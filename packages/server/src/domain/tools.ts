import type {
  AuthorizationServerMetadata,
  OAuthClientInformationMixed,
} from "@modelcontextprotocol/client";
import type { ToolGrant } from "@parley/protocol";
import { policyFor } from "../rules/tool-calls.ts";
import type { SealBinding, Vault } from "../security/vault.ts";
import type { AgentRecord } from "../store/agents.ts";
import type { ReadTx } from "../store/store.ts";
import type { ToolCallRecord } from "../store/tool-calls.ts";
import type { ToolGrantRecord, ToolRecord } from "../store/tools.ts";

/** What secrets are sealed for. Not a valid provider id, so that they are never taken for a provider key. */
export const toolSecretsBinding = (server: { id: string; owner_id: number }): SealBinding => ({
  owner_id: server.owner_id,
  provider: `tool server ${server.id}`,
});

/** What a tool server is contacted with. */
export interface ToolSecrets {
  /** A bearer token that its owner gave. */
  readonly token?: string;
  readonly oauth?: OAuthSecrets;
}

/** What is known of the authorization server, and what it has granted. */
export interface OAuthSecrets {
  readonly server_url: string;
  readonly metadata: AuthorizationServerMetadata;
  readonly client: OAuthClientInformationMixed;
  readonly redirect_url: string;
  /** The resource that tokens are asked for. */
  readonly resource?: string;
  readonly tokens?: { readonly access_token: string; readonly refresh_token?: string | undefined };
  /** An authorization that has begun: its owner's browser is at the authorization server. */
  readonly pending?: {
    readonly state_hash: string;
    readonly code_verifier: string;
    readonly expires_at: number;
  };
}

type Owned = { id: string; owner_id: number };

export const sealToolSecrets = (vault: Vault, server: Owned, secrets: ToolSecrets): string =>
  vault.seal(JSON.stringify(secrets), toolSecretsBinding(server));

export const openToolSecrets = (
  vault: Vault,
  server: Owned & { secrets: string | null },
): ToolSecrets =>
  server.secrets === null ? {} : JSON.parse(vault.open(server.secrets, toolSecretsBinding(server)));

/** The tools of servers, by the id of the server. Null: the server has not answered since the start. */
export type ServerTools = ReadonlyMap<string, readonly ToolRecord[] | null>;

export const toolGranted = (offered: ServerTools, grant: { server_id: string; tool: string }) =>
  offered.get(grant.server_id)?.find(({ name }) => name === grant.tool);

/** The tools of the servers that a person can use: their own, and those of the operator. */
export async function toolsOfServers(tx: ReadTx, ownerId: number, operatorTools: ServerTools) {
  const own = await tx.toolServers(ownerId);
  return new Map([...operatorTools, ...own.map(({ id, tools }) => [id, tools] as const)]);
}

type AgentTool = Pick<ToolCallRecord, "agent_id" | "owner_id" | "tool"> & { server_id: string };

/**
 * What the agent may do with the tool now, and the fingerprint of the tool; null if it may not use it,
 * or the tool is gone. A tool of a server that has not answered since the start counts as it was granted.
 */
export async function toolPermission(
  tx: ReadTx,
  { agent_id, owner_id, server_id, tool }: AgentTool,
  operatorTools: ServerTools,
) {
  const grants = await tx.toolGrants(agent_id);
  const grant = grants.find((each) => each.server_id === server_id && each.tool === tool);
  if (!grant) return null;
  const { policy, fingerprint } = grant;
  if (operatorTools.get(server_id) === null) return { policy, fingerprint };
  const server = operatorTools.has(server_id) ? null : await tx.toolServer(server_id);
  const own = server?.owner_id === owner_id ? server.tools : [];
  const tools = operatorTools.get(server_id) ?? own;
  const now = tools.find(({ name }) => name === tool);
  return now ? { policy: policyFor(grant, now), fingerprint: now.fingerprint } : null;
}

/**
 * The fingerprint of a tool that is to be granted, or why it cannot be. An earlier grant stays as it was
 * if `changed` is given, and while its server has not answered since the start.
 */
export function grantedFingerprint(
  grant: Pick<ToolGrantRecord, "server_id" | "tool"> & { changed?: boolean | undefined },
  offered: ServerTools,
  current: readonly ToolGrantRecord[],
): string | { problem: string } {
  const { server_id, tool, changed } = grant;
  const before = current.find((each) => each.server_id === server_id && each.tool === tool);
  if (changed === true && !before)
    return { problem: "was not granted before, so it cannot be kept" };
  const isUnknown = offered.get(server_id) === null;
  const found = isUnknown ? before : toolGranted(offered, grant);
  if (found) return (changed !== undefined && before ? before : found).fingerprint;
  return {
    problem: isUnknown
      ? "is a tool of a server that has not answered yet"
      : "is not a tool of a server that you can use",
  };
}

/**
 * Returns a function for what each agent of a person was granted, as its owner sees it. A tool that is
 * gone counts as unchanged. The tools of the servers are read once for all agents.
 */
export function grantsShownTo(tx: ReadTx, ownerId: number, operatorTools: ServerTools) {
  let reading: Promise<ServerTools> | undefined;
  return async ({ account }: AgentRecord): Promise<ToolGrant[]> => {
    const grants = await tx.toolGrants(account.id);
    if (grants.length === 0) return [];
    reading ??= toolsOfServers(tx, ownerId, operatorTools);
    const offered = await reading;
    return grants.map((grant) => {
      const { server_id, tool, policy, fingerprint } = grant;
      const now = toolGranted(offered, grant)?.fingerprint ?? fingerprint;
      return { server_id, tool, policy, changed: now !== fingerprint };
    });
  };
}
