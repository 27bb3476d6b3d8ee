import type { OperatorToolServer } from "../../config/tool-servers.ts";
import { ANSWER_MS } from "../../domain/elicitations.ts";
import type { ServerTools } from "../../domain/tools.ts";
import type { Logger } from "../../observe/log.ts";
import type { Metrics } from "../../observe/metrics.ts";
import { type GuardedFetch, untilAborted } from "../../security/guarded-fetch.ts";
import type { AgentRecord } from "../../store/agents.ts";
import type { AuthorizationAnswer } from "./authorization.ts";
import type { Timeouts } from "./connection.ts";
import { createContacts, type KnownServer } from "./contacts.ts";
import { type GrantedTool, grantedTools } from "./granted-tools.ts";
import { loadClient } from "./load-client.ts";
import { createOperatorServers } from "./operator-servers.ts";
import type { ToolResult } from "./result-text.ts";
import type { OwnServerOptions } from "./server-auth.ts";
import { type CalledTool, createServerCalls, type PermittedCallOptions } from "./server-calls.ts";
import { connectionKey, createServerDirectory } from "./server-directory.ts";

export type { KnownServer } from "./contacts.ts";
export type { GrantedTool } from "./granted-tools.ts";
export type { Elicit } from "./mcp-client.ts";
export type { ToolResult } from "./result-text.ts";
export type { CallPermission } from "./server-calls.ts";

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
  /** Closes the connections to a server that was removed, or has another address. */
  forget(server: Pick<KnownServer, "id" | "url">): void;
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

export function createToolServers(options: ToolServersOptions): ToolServers {
  const { store, log, metrics, timeouts = TIMEOUTS } = options;
  const contacts = createContacts({ timeouts, log });
  metrics.watch("parley_tool_connections", "gauge", "Connections to tool servers.", contacts.size);
  const contact = (server: KnownServer, signal = AbortSignal.timeout(2 * timeouts.contactMs)) =>
    contacts.refresh(server, signal);
  const { offered = [], operatorFetch = options.fetch } = options;
  const operators = createOperatorServers(offered, operatorFetch, contact);
  const directory = createServerDirectory(operators, options);
  const { callMs, refreshMs } = timeouts;
  const authorization = async () => (await loadClient()).createToolAuthorization(options);

  async function refresh(ownerId: number, serverId: string): Promise<KnownServer | null> {
    const server = await directory.find(ownerId, serverId);
    if (!server) return null;
    // Processes of a program are everybody's: they stay.
    if (server.url !== null) contacts.drop(server.key);
    await contact(server);
    return directory.find(ownerId, serverId);
  }

  return {
    granted: (agent, signal) =>
      grantedTools({ store, directory, operators, contacts, refreshMs }, agent, signal),
    call: createServerCalls({ directory, contacts, callMs, log, metrics }),
    known: (ownerId) => directory.all(ownerId),
    operatorTools: operators.tools,
    async contacted(ids) {
      const deadline = AbortSignal.timeout(refreshMs);
      // The time is up: what has not answered stays unknown, as `operatorTools` says.
      await untilAborted(operators.contactUnknown(ids, deadline), deadline).catch(() => {});
    },
    refresh,
    async authorize(ownerId, serverId, base) {
      const record = await store.read((tx) => tx.toolServer(serverId));
      return record?.owner_id === ownerId ? (await authorization()).begin(record, base) : null;
    },
    finishAuthorization: async (ownerId, answer) =>
      refresh(ownerId, await (await authorization()).finish(ownerId, answer)),
    forget: (server) => contacts.drop(connectionKey(server)),
    close: () => contacts.close(),
  };
}
