import { ANSWER_MS } from "../../domain/elicitations.ts";
import type { Logger } from "../../observe/log.ts";
import type { Metrics } from "../../observe/metrics.ts";
import { untilAborted } from "../../security/guarded-fetch.ts";
import type { AuthorizationAnswer } from "./authorization.ts";
import type { Timeouts } from "./connection.ts";
import { createContacts, type KnownServer } from "./contacts.ts";
import { createGrantedTools } from "./granted-tools.ts";
import { loadClient } from "./load-client.ts";
import { createServerCalls } from "./server-calls.ts";
import {
  connectionKey,
  createServerDirectory,
  type ServerDirectoryOptions,
} from "./server-directory.ts";

export interface ToolServersOptions extends ServerDirectoryOptions {
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

export type ToolServers = ReturnType<typeof createToolServers>;

/** The tool servers of people, and calls of their tools. */
export function createToolServers(options: ToolServersOptions) {
  const { store, log, metrics, timeouts = TIMEOUTS } = options;
  const contacts = createContacts({ timeouts, log });
  metrics.watch("parley_tool_connections", "gauge", "Connections to tool servers.", contacts.size);
  const contact = (server: KnownServer, signal = AbortSignal.timeout(2 * timeouts.contactMs)) =>
    contacts.refresh(server, signal);
  const directory = createServerDirectory(options, contact);
  const { callMs, refreshMs } = timeouts;
  const authorization = async () => (await loadClient()).createToolAuthorization(options);

  /** Asks such a server for its tools again, and stores the outcome. Null: there is none. */
  async function refresh(ownerId: number, serverId: string): Promise<KnownServer | null> {
    const server = await directory.find(ownerId, serverId);
    if (!server) return null;
    // Processes of a program are everybody's: they stay.
    if (server.url !== null) contacts.drop(server.key);
    await contact(server);
    return directory.find(ownerId, serverId);
  }

  return {
    granted: createGrantedTools({ store, directory, contacts, refreshMs }),
    call: createServerCalls({ directory, contacts, callMs, log, metrics }),
    /** The servers that a person can use: their own, oldest first, and those of the operator. */
    known: directory.all,
    /** The tools of the operator's servers, as far as they are known. */
    operatorTools: directory.operatorTools,
    /** Waits until the operator's servers among these have answered once, for five seconds at most. */
    async contacted(ids: readonly string[]): Promise<void> {
      const deadline = AbortSignal.timeout(refreshMs);
      // The time is up: what has not answered stays unknown, as `operatorTools` says.
      await untilAborted(directory.contactUnknown(ids, deadline), deadline).catch(() => {});
    },
    refresh,
    /**
     * Begins the authorization of a server of the owner by OAuth. Returns the page that the owner opens;
     * null if there is no such server. `base` is the address of this service as the owner knows it.
     */
    async authorize(ownerId: number, serverId: string, base: string): Promise<string | null> {
      const record = await store.read((tx) => tx.toolServer(serverId));
      return record?.owner_id === ownerId ? (await authorization()).begin(record, base) : null;
    },
    /**
     * Ends an authorization that the owner began, once, and asks the server for its tools. Throws
     * `forbidden` if somebody else began it, and `conflict` if it cannot be ended.
     */
    finishAuthorization: async (ownerId: number, answer: AuthorizationAnswer) =>
      refresh(ownerId, await (await authorization()).finish(ownerId, answer)),
    /** Closes the connections to a server that was removed, or has another address. */
    forget: (server: Pick<KnownServer, "id" | "url">) => contacts.drop(connectionKey(server)),
    close: () => contacts.close(),
  };
}
