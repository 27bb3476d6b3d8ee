import type { ToolGrant } from "@parley/protocol";
import type { SealBinding } from "../security/vault.ts";
import type { ToolGrantRecord, ToolRecord } from "../store/tools.ts";

/** What secrets are sealed for. Not a valid provider id, so that they are never taken for a provider key. */
export const toolSecretsBinding = (server: { id: string; owner_id: number }): SealBinding => ({
  owner_id: server.owner_id,
  provider: `tool server ${server.id}`,
});

/** The tools of servers, by the id of the server. */
export type OfferedTools = ReadonlyMap<string, readonly ToolRecord[]>;

export const offeredTool = (offered: OfferedTools, grant: { server_id: string; tool: string }) =>
  offered.get(grant.server_id)?.find(({ name }) => name === grant.tool);

/** A grant as its owner sees it. A tool that is gone counts as unchanged. */
export function shownGrant(grant: ToolGrantRecord, offered: OfferedTools): ToolGrant {
  const { server_id, tool, policy, fingerprint } = grant;
  const now = offeredTool(offered, grant)?.fingerprint ?? fingerprint;
  return { server_id, tool, policy, changed: now !== fingerprint };
}
