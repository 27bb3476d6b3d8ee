import type { OperatorToolServer } from "../../config/tool-servers.ts";
import { ANSWER_MS } from "../../domain/elicitations.ts";
import { type ServerTools, toolGranted } from "../../domain/tools.ts";
import type { Logger } from "../../observe/log.ts";
import type { Metrics } from "../../observe/metrics.ts";
import { policyFor, type ToolPolicy } from "../../rules/tool-calls.ts";
import { type GuardedFetch, untilAborted } from "../../security/guarded-fetch.ts";
import type { AgentRecord } from "../../store/agents.ts";
import type { ToolGrantRecord, ToolRecord } from "../../store/tools.ts";
import type { AuthorizationAnswer } from "./authorization.ts";
import { callMetrics, type Outcome } from "./call-metrics.ts";
import type { CallOptions, Timeouts } from "./connection.ts";
import { type KnownServer, contacts as newContacts } from "./contacts.ts";
import { loadClient } from "./load-client.ts";
import { operatorServers } from "./operator-servers.ts";
import { ownServer } from "./own-server.ts";
import { failedCall, REFUSED, type ToolResult } from "./result-text.ts";
import type { OwnServerOptions } from "./server-auth.ts";

export type { CallOptions } from "./connection.ts";
export type { KnownServer } from "./contacts.ts";
export type { Elicit } from "./mcp-client.ts";
export type { ToolResult } from "./result-text.ts";

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

/** The tool that a call is for, by name and as it was when the call was asked for. */
export type CalledTool = Pick<GrantedTool, "server_id" | "tool" | "fingerprint">;

export interface PermittedCallOptions extends CallOptions {
  /** What the agent may do. Asked right before the call is made, which may be a while later. */
  permission(): Promise<CallPermission>;
}

/** Whether a call may be made, needs approval first, or must not be made. */
export type CallPermission = "permitted" | "asks" | "refused";

/** The tool servers of people, and calls of their tools. */
export interface ToolServers {
  /**
   * The tools that an agent may use now. Servers that were not contacted for a while are asked for
   * their tools first, for five seconds at most; what a server that does not answer offered last is
   * still offered.
   */
  granted(agent: AgentRecord, signal: AbortSignal): Promise<GrantedTool[]>;
  /**
   * Calls a tool of a server of the owner or of the operator, unless it is another one by now: its
   * fingerprint tells. A call has 60 s, the wait for a connection included, without the time in which
   * `elicit` waits for an answer. Whatever fails is told in the result; rejects only with the reason of
   * the signal, after the server was told.
   */
  call(
    owner_id: number,
    tool: CalledTool,
    input: Record<string, unknown>,
    options: PermittedCallOptions,
  ): Promise<ToolResult>;
  /** The servers that a person can use: their own, oldest first, and those of the operator. */
  known(owner_id: number): Promise<KnownServer[]>;
  /** The tools of the operator's servers, as far as they are known. */
  operatorTools(): ServerTools;
  /** Waits until the operator's servers among these have answered once, for five seconds at most. */
  contacted(server_ids: readonly string[]): Promise<void>;
  /** Asks such a server for its tools again, and stores the outcome. Null: there is none. */
  refresh(owner_id: number, server_id: string): Promise<KnownServer | null>;
  /**
   * Begins the authorization of a server of the owner by OAuth. Returns the page that the owner opens;
   * null if there is no such server. `base` is the address of this service as the owner knows it.
   */
  authorize(owner_id: number, server_id: string, base: string): Promise<string | null>;
  /**
   * Ends an authorization that the owner began, once, and asks the server for its tools. Throws
   * `forbidden` if somebody else began it, and `conflict` if it cannot be ended.
   */
  finishAuthorization(owner_id: number, answer: AuthorizationAnswer): Promise<KnownServer | null>;
  /** Closes the connections to a server that was removed. */
  forget(server_id: string): void;
  close(): Promise<void>;
}

export interface ToolServersOptions extends OwnServerOptions {
  /** The servers that the operator offers to everybody. */
  readonly offered?: readonly OperatorToolServer[];
  /** For the addresses that the operator configured: they may be private. */
  readonly operatorFetch?: GuardedFetch;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly timeouts?: Timeouts;
}

const TIMEOUTS: Timeouts = {
  contactMs: 15_000,
  refreshMs: 5000,
  callMs: 60_000,
  elicitMs: ANSWER_MS,
};

/** After this time without contact, a server is asked for its tools before they are offered. */
const STALE_MS = 5 * 60_000;

const GONE = "The tool does not exist any more.";
const notCalled = (why: string): ToolResult => ({
  ...failedCall(`The tool was not called: ${why}`),
  needs_approval: true,
});
const changed = () => notCalled("it has changed since it was offered.");

export function toolServers(options: ToolServersOptions): ToolServers {
  const { store, log, metrics, timeouts = TIMEOUTS } = options;
  const contacts = newContacts({ timeouts, log });
  const authorization = async () => (await loadClient()).toolAuthorization(options);
  const count = callMetrics(metrics);
  metrics.watch("parley_tool_connections", "gauge", "Connections to tool servers.", contacts.size);

  const contactSignal = () => AbortSignal.timeout(2 * timeouts.contactMs);
  const operators = operatorServers(
    options.offered ?? [],
    options.operatorFetch ?? options.fetch,
    (server) => contacts.refresh(server, contactSignal()),
  );

  async function known(ownerId: number): Promise<KnownServer[]> {
    const records = await store.read((tx) => tx.toolServers(ownerId));
    return [...records.map((record) => ownServer(record, options)), ...operators.known(ownerId)];
  }

  async function find(ownerId: number, serverId: string): Promise<KnownServer | null> {
    const offered = operators.known(ownerId).find(({ id }) => id === serverId);
    if (offered) return offered;
    const record = await store.read((tx) => tx.toolServer(serverId));
    return record?.owner_id === ownerId ? ownServer(record, options) : null;
  }

  /** Reads each server on its own: parsing the tools of all at once takes long. */
  async function findAll(ownerId: number, ids: readonly string[]): Promise<KnownServer[]> {
    const found = await Promise.all(ids.map((id) => find(ownerId, id)));
    return found.filter((server) => server !== null);
  }

  async function refresh(ownerId: number, serverId: string): Promise<KnownServer | null> {
    const server = await find(ownerId, serverId);
    if (!server) return null;
    // Processes of a program are everybody's: they stay.
    if (server.url !== null) contacts.drop(server.key);
    await contacts.refresh(server, contactSignal());
    return find(ownerId, serverId);
  }

  async function granted(agent: AgentRecord, signal: AbortSignal): Promise<GrantedTool[]> {
    const grants = await store.read((tx) => tx.toolGrants(agent.account.id));
    if (grants.length === 0) return [];
    const ids = [...new Set(grants.map(({ server_id }) => server_id))];
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(timeouts.refreshMs)]);
    const refreshed = refreshedServers(agent.owner.id, ids, bounded);
    const servers = await untilAborted(refreshed, bounded).catch((error) => {
      signal.throwIfAborted();
      if (bounded.aborted) return findAll(agent.owner.id, ids);
      throw error;
    });
    const operatorNames = operators.known(agent.owner.id).map(({ name }) => name);
    return grantedTools(grants, servers, operatorNames);
  }

  /** Servers that were not contacted for a while are asked for their tools. */
  async function refreshedServers(ownerId: number, ids: readonly string[], signal: AbortSignal) {
    await operators.contacted(ids);
    const servers = await findAll(ownerId, ids);
    const stale = servers.filter(({ contacted_at: at }) => (at ?? 0) < Date.now() - STALE_MS);
    if (stale.length === 0) return servers;
    await Promise.all(stale.map((server) => contacts.refresh(server, signal)));
    return findAll(ownerId, ids);
  }

  /** Waits for the first contact with the operator's servers, and asks those that did not answer again. */
  async function contactUnknown(ids: readonly string[], signal: AbortSignal): Promise<void> {
    await operators.contacted(ids);
    const isUnknown = (id: string) => ids.includes(id) && operators.tools().get(id) === null;
    const unknown = operators.known(0).filter(({ id }) => isUnknown(id));
    await Promise.all(unknown.map((server) => contacts.refresh(server, signal)));
  }

  /** Makes a call, and once more if the server has forgotten the connection, and so has not made it. */
  async function callTool(
    server: KnownServer,
    tool: ToolRecord,
    input: Record<string, unknown>,
    callOptions: PermittedCallOptions,
    endsAt = performance.now() + timeouts.callMs,
  ): Promise<[Outcome, ToolResult]> {
    const leftMs = () => Math.max(0, Math.round(endsAt - performance.now()));
    const waiting = AbortSignal.any([callOptions.signal, AbortSignal.timeout(leftMs())]);
    const { lease, tools } = await contacts.acquire(server, waiting);
    try {
      const now = tools.find(({ name }) => name === tool.name);
      if (!now) return ["refused", failedCall(GONE)];
      if (now.fingerprint !== tool.fingerprint) return ["refused", changed()];
      // The call may have waited for the connection for long.
      const permission = await callOptions.permission();
      if (permission === "refused") return ["refused", failedCall(REFUSED)];
      if (permission === "asks") return ["refused", notCalled("it needs approval now.")];
      const result = await lease.connection.callTool(tool.name, input, {
        ...callOptions,
        timeoutMs: leftMs(),
      });
      return [result.is_error ? "error" : "ok", result];
    } catch (error) {
      const { isConnectionForgotten, isRequestRejected } = await loadClient();
      const isForgotten = isConnectionForgotten(error);
      // Others are probably forgotten too: the next connection is new.
      if (isForgotten || isRequestRejected(error)) contacts.drop(server.key);
      if (!lease.isReused || !isForgotten) throw error;
    } finally {
      lease.release();
    }
    return callTool(server, tool, input, callOptions, endsAt);
  }

  async function outcomeOf(
    ownerId: number,
    { server_id, tool: name, fingerprint }: CalledTool,
    input: Record<string, unknown>,
    callOptions: PermittedCallOptions,
  ): Promise<[Outcome, ToolResult | null]> {
    const server = await find(ownerId, server_id);
    const tool = server?.tools.find((each) => each.name === name);
    if (!server || !tool) return ["refused", failedCall(GONE)];
    if (tool.fingerprint !== fingerprint) return ["refused", changed()];
    try {
      return await callTool(server, tool, input, callOptions);
    } catch (error) {
      if (callOptions.signal.aborted) return ["aborted", null];
      const { callError, contactError, isTimeout } = await loadClient();
      const failure = contactError(error);
      if (failure.status === "unauthorized") await server.save({ ...failure, at: Date.now() });
      return [isTimeout(error) ? "timeout" : "failed", failedCall(callError(error))];
    }
  }

  return {
    granted,
    async call(ownerId, tool, input, callOptions) {
      const startedAt = performance.now();
      const [outcome, result] = await outcomeOf(ownerId, tool, input, callOptions);
      const seconds = count(outcome, startedAt);
      log.debug({ server_id: tool.server_id, outcome, seconds }, "tool call ended");
      if (!result) throw callOptions.signal.reason;
      return result;
    },
    known,
    operatorTools: operators.tools,
    async contacted(ids) {
      const deadline = AbortSignal.timeout(timeouts.refreshMs);
      await untilAborted(contactUnknown(ids, deadline), deadline).catch(() => {});
    },
    refresh,
    async authorize(ownerId, serverId, base) {
      const record = await store.read((tx) => tx.toolServer(serverId));
      return record?.owner_id === ownerId ? (await authorization()).begin(record, base) : null;
    },
    finishAuthorization: async (ownerId, answer) =>
      refresh(ownerId, await (await authorization()).finish(ownerId, answer)),
    forget: (serverId) => contacts.drop(serverId),
    close: () => contacts.close(),
  };
}

function grantedTools(
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
