import { toolGranted } from "../../domain/tools.ts";
import { policyFor, type ToolPolicy } from "../../rules/tool-calls.ts";
import { untilAborted } from "../../security/guarded-fetch.ts";
import type { AgentRecord } from "../../store/agents.ts";
import type { Store } from "../../store/store.ts";
import type { ToolGrantRecord, ToolRecord } from "../../store/tools.ts";
import type { Contacts, KnownServer } from "./contacts.ts";
import type { ServerDirectory } from "./server-directory.ts";

/** A tool that an agent may use: one of a server, or a built-in one. */
export interface UsableTool extends Omit<ToolRecord, "name" | "fingerprint"> {
  /** Null for built-in tools. */
  readonly server_id: string | null;
  /** The name of the server, with `(own)` if a server of the operator has the same. */
  readonly server: string;
  readonly tool: string;
  /** Of the tool as it is offered. Null for built-in tools. */
  readonly fingerprint: string | null;
  /** `ask` for a tool that changed since it was granted. */
  readonly policy: ToolPolicy;
}

interface GrantedToolsOptions {
  readonly store: Pick<Store, "read">;
  readonly directory: ServerDirectory;
  readonly contacts: Contacts;
  readonly refreshMs: number;
}

/** After this time without contact, a server is asked for its tools before they are offered. */
const STALE_MS = 5 * 60_000;

export function createGrantedTools({ store, directory, contacts, refreshMs }: GrantedToolsOptions) {
  async function refreshedServers(ownerId: number, ids: readonly string[], signal: AbortSignal) {
    await directory.contacted(ids);
    const servers = await directory.findAll(ownerId, ids);
    const stale = servers.filter(({ contacted_at: at }) => (at ?? 0) < Date.now() - STALE_MS);
    if (stale.length === 0) return servers;
    await Promise.all(stale.map((server) => contacts.refresh(server, signal)));
    return directory.findAll(ownerId, ids);
  }

  /**
   * The tools that an agent may use now. Servers that were not contacted for a while are asked for
   * their tools first, for five seconds at most; what a server that does not answer offered last is
   * still offered.
   */
  return async ({ account, owner }: AgentRecord, signal: AbortSignal): Promise<UsableTool[]> => {
    const grants = await store.read((tx) => tx.toolGrants(account.id));
    if (grants.length === 0) return [];
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(refreshMs)]);
    const ids = [...new Set(grants.map(({ server_id }) => server_id))];
    const refreshed = refreshedServers(owner.id, ids, bounded);
    const servers = await untilAborted(refreshed, bounded).catch((error) => {
      signal.throwIfAborted();
      if (bounded.aborted) return directory.findAll(owner.id, ids);
      throw error;
    });
    return toolsOf(grants, servers, directory.operatorNames);
  };
}

function toolsOf(
  grants: readonly ToolGrantRecord[],
  servers: readonly KnownServer[],
  operatorNames: ReadonlySet<string>,
): UsableTool[] {
  const offered = new Map(servers.map(({ id, tools }) => [id, tools]));
  // Models and people must be able to tell a person's server from the operator's of the same name.
  const nameOf = ({ name, operator }: KnownServer) =>
    !operator && operatorNames.has(name) ? `${name} (own)` : name;
  const names = new Map(servers.map((server) => [server.id, nameOf(server)]));
  return grants.flatMap((grant) => {
    const known = toolGranted(offered, grant);
    if (!known) return [];
    const { name: tool, ...described } = known;
    const { server_id } = grant;
    const server = names.get(server_id) ?? "";
    return { ...described, server_id, server, tool, policy: policyFor(grant, known) };
  });
}
