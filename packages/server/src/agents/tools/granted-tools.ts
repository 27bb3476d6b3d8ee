import { toolGranted } from "../../domain/tools.ts";
import { policyFor, type ToolPolicy } from "../../rules/tool-calls.ts";
import { untilAborted } from "../../security/guarded-fetch.ts";
import type { AgentRecord } from "../../store/agents.ts";
import type { Store } from "../../store/store.ts";
import type { ToolGrantRecord } from "../../store/tools.ts";
import type { Contacts, KnownServer } from "./contacts.ts";
import type { OperatorServers } from "./operator-servers.ts";
import type { ServerDirectory } from "./server-directory.ts";

/** A tool that an agent may use. */
export interface GrantedTool {
  readonly server_id: string;
  /** The name of the server, with `(own)` if a server of the operator has the same. */
  readonly server: string;
  readonly tool: string;
  readonly title: string;
  readonly description: string;
  readonly input_schema: Record<string, unknown>;
  /** Of the tool as it is offered. */
  readonly fingerprint: string;
  /** `ask` for a tool that changed since it was granted. */
  readonly policy: ToolPolicy;
}

export interface GrantedToolsOptions {
  readonly store: Pick<Store, "read">;
  readonly directory: ServerDirectory;
  readonly operators: OperatorServers;
  readonly contacts: Contacts;
  /** For all contacts before a turn. */
  readonly refreshMs: number;
}

/** After this time without contact, a server is asked for its tools before they are offered. */
const STALE_MS = 5 * 60_000;
/** The same for a server with a tool that may run without approval: it may have changed silently. */
const UNATTENDED_STALE_MS = 30_000;

/** The tools that an agent may use, of servers that were asked for them lately, as far as they answer. */
export async function grantedTools(
  options: GrantedToolsOptions,
  { account, owner }: AgentRecord,
  signal: AbortSignal,
): Promise<GrantedTool[]> {
  const { store, directory, operators, refreshMs } = options;
  const grants = await store.read((tx) => tx.toolGrants(account.id));
  if (grants.length === 0) return [];
  const ids = serversOf(grants);
  const bounded = AbortSignal.any([signal, AbortSignal.timeout(refreshMs)]);
  const refreshed = refreshedServers(options, owner.id, grants, bounded);
  const servers = await untilAborted(refreshed, bounded).catch((error) => {
    signal.throwIfAborted();
    if (bounded.aborted) return directory.findAll(owner.id, ids);
    throw error;
  });
  const operatorNames = operators.known(owner.id).map(({ name }) => name);
  return toolsOf(grants, servers, operatorNames);
}

const serversOf = (grants: readonly ToolGrantRecord[]) => [
  ...new Set(grants.map(({ server_id }) => server_id)),
];

/** Servers that were not contacted for a while are asked for their tools. */
async function refreshedServers(
  { directory, operators, contacts }: GrantedToolsOptions,
  ownerId: number,
  grants: readonly ToolGrantRecord[],
  signal: AbortSignal,
): Promise<KnownServer[]> {
  const ids = serversOf(grants);
  const unattended = serversOf(grants.filter(({ policy }) => policy !== "ask"));
  const staleMs = (id: string) => (unattended.includes(id) ? UNATTENDED_STALE_MS : STALE_MS);
  await operators.contacted(ids);
  const servers = await directory.findAll(ownerId, ids);
  const isStale = ({ id, contacted_at: at }: KnownServer) => (at ?? 0) < Date.now() - staleMs(id);
  const stale = servers.filter(isStale);
  if (stale.length === 0) return servers;
  await Promise.all(stale.map((server) => contacts.refresh(server, signal)));
  return directory.findAll(ownerId, ids);
}

function toolsOf(
  grants: readonly ToolGrantRecord[],
  servers: readonly KnownServer[],
  operatorNames: readonly string[],
): GrantedTool[] {
  const offered = new Map(servers.map(({ id, tools }) => [id, tools]));
  // Models and people must be able to tell a person's server from the operator's of the same name.
  const nameOf = ({ name, operator }: KnownServer) =>
    !operator && operatorNames.includes(name) ? `${name} (own)` : name;
  const names = new Map(servers.map((server) => [server.id, nameOf(server)]));
  return grants.flatMap((grant) => {
    const tool = toolGranted(offered, grant);
    if (!tool) return [];
    const { name, title, description, input_schema, fingerprint } = tool;
    return {
      server_id: grant.server_id,
      server: names.get(grant.server_id) ?? "",
      tool: name,
      title,
      description,
      input_schema: { ...input_schema },
      fingerprint,
      policy: policyFor(grant, tool),
    };
  });
}
