import type { Logger } from "../../observe/log.ts";
import type { ToolServerRecord, ToolServerState } from "../../store/tools.ts";
import type { Connection, Timeouts } from "./connection.ts";
import { loadClient } from "./load-client.ts";
import { ConnectionPool, type PoolKey } from "./pool.ts";

/** A server as it was when it was last contacted, and the way to it. */
export interface KnownServer
  extends PoolKey,
    Pick<ToolServerRecord, "id" | "name" | "status" | "error" | "tools" | "contacted_at"> {
  /** As people see it. Null for a program. */
  readonly url: string | null;
  /** Whether the operator offers it to everybody. */
  readonly operator: boolean;
  connect(timeouts: Timeouts, signal: AbortSignal): Promise<Connection>;
  /** Stores the outcome of a contact. */
  save(state: ToolServerState): Promise<void>;
}

export type Contacts = ReturnType<typeof createContacts>;

interface ContactsOptions {
  readonly timeouts: Timeouts;
  readonly log: Logger;
}

/** Contacts with tool servers. The outcome of each, and the tools of the server, are stored. */
export function createContacts(options: ContactsOptions) {
  const pool = new ConnectionPool();

  /** A connection, and the tools of its server: as they are now if the connection is new. */
  async function acquire(server: KnownServer, signal: AbortSignal) {
    let { tools } = server;
    const openOne = async () => {
      const opened = await open(server, options, signal);
      tools = opened.tools;
      return opened.connection;
    };
    const lease = await pool.acquire(server, openOne, signal);
    return { lease, tools };
  }

  type Contact = Awaited<ReturnType<typeof acquire>>;

  /** The tools as they are now. Asks the server if the connection is not new. */
  const currentTools = async (server: KnownServer, contact: Contact, signal: AbortSignal) =>
    contact.lease.isReused ? listTools(server, contact.lease.connection, signal) : contact.tools;

  async function refresh(server: KnownServer, signal: AbortSignal): Promise<void> {
    const contact = await acquire(server, signal);
    try {
      await currentTools(server, contact, signal);
    } finally {
      contact.lease.release();
    }
  }

  return {
    acquire,
    currentTools,
    /** Asks for the tools. Rejects never: the outcome is stored. */
    refresh: (server: KnownServer, signal: AbortSignal) =>
      refresh(server, signal).catch(logged(options.log, server)),
    /** Ends the connections with this key. */
    drop: (key: string) => pool.drop(key),
    size: () => pool.size(),
    close: () => pool.close(),
  };
}

/** Connects to a server and lists its tools, which are listed again whenever it announces changes. */
async function open(server: KnownServer, options: ContactsOptions, signal: AbortSignal) {
  let connection: Connection | undefined;
  try {
    connection = await server.connect(options.timeouts, signal);
    let isStale = false;
    connection.onListChanged = () => {
      isStale = true;
    };
    const tools = await listTools(server, connection, signal);
    connection.onListChanged = relister(server, connection, options);
    if (isStale) connection.onListChanged();
    return { connection, tools };
  } catch (error) {
    await connection?.close();
    // An attempt that was given up does not show that anything is wrong with the server.
    if (!isGivenUp(signal)) {
      const { contactError } = await loadClient();
      await server.save({ ...contactError(error), at: Date.now() });
    }
    throw error;
  }
}

async function listTools(server: KnownServer, connection: Connection, signal: AbortSignal) {
  const tools = await connection.listTools(signal);
  await server.save({ status: "ready", error: null, tools, at: Date.now() });
  return tools;
}

/**
 * Lists the tools again, once at a time, however often a server announces changes. What it announces
 * while they are listed may not be in that list: it is asked once more afterwards.
 */
function relister(
  server: KnownServer,
  connection: Connection,
  { timeouts, log }: ContactsOptions,
): () => void {
  let isListing = false;
  let isStale = false;
  return async () => {
    isStale = true;
    if (isListing) return;
    isListing = true;
    while (isStale) {
      isStale = false;
      const signal = AbortSignal.timeout(timeouts.contactMs);
      await listTools(server, connection, signal).catch(logged(log, server));
    }
    isListing = false;
  };
}

/** Whether a contact was ended by a person or by the end of the process, and not by its own deadline. */
const isGivenUp = ({ aborted, reason }: AbortSignal): boolean =>
  aborted && !(reason instanceof DOMException && reason.name === "TimeoutError");

const logged = (log: Logger, server: KnownServer) => async (error: unknown) => {
  const { contactError } = await loadClient();
  log.debug({ server_id: server.id, why: contactError(error).error }, "tool server failed");
};
