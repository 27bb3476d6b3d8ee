import type { Logger } from "../../observe/log.ts";
import type { ToolServerRecord, ToolServerState } from "../../store/tools.ts";
import type { Connection, Timeouts } from "./connection.ts";
import { loadClient } from "./load-client.ts";
import { createConnectionPool, type PoolKey } from "./pool.ts";

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

/** Contacts with tool servers. The outcome of each, and the tools of the server, are stored. */
export function createContacts({ timeouts, log }: { timeouts: Timeouts; log: Logger }) {
  const pool = createConnectionPool();
  /** Lists that are under way on connections in use, by the keys of servers. */
  const listing = new Map<string, ReturnType<typeof listTools>>();

  const logged = (server: KnownServer) => async (error: unknown) => {
    const { contactError } = await loadClient();
    log.debug({ server_id: server.id, why: contactError(error).error }, "tool server failed");
  };

  /** A connection, and the tools of its server: as they are now if the connection is new. */
  async function acquire(server: KnownServer, signal: AbortSignal) {
    let { tools } = server;
    const openOne = async () => {
      const opened = await open(server, signal);
      tools = opened.tools;
      return opened.connection;
    };
    const lease = await pool.acquire(server, openOne, signal);
    return { lease, tools };
  }

  /** Connects to a server and lists its tools, which are listed again whenever it announces changes. */
  async function open(server: KnownServer, signal: AbortSignal) {
    let connection: Connection | undefined;
    try {
      connection = await server.connect(timeouts, signal);
      const tools = await listAlways(server, connection, signal);
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

  /**
   * Lists the tools, and again, once at a time, however often the server announces changes. What it
   * announces while they are listed may not be in that list: it is asked once more afterwards.
   */
  async function listAlways(server: KnownServer, connection: Connection, signal: AbortSignal) {
    let isListing = true;
    let isStale = false;
    const listChanged = async () => {
      isListing = true;
      while (isStale) {
        isStale = false;
        const deadline = AbortSignal.timeout(timeouts.contactMs);
        await listTools(server, connection, deadline).catch(logged(server));
      }
      isListing = false;
    };
    connection.onListChanged = () => {
      isStale = true;
      if (!isListing) void listChanged();
    };
    const tools = await listTools(server, connection, signal);
    void listChanged();
    return tools;
  }

  type Contact = Awaited<ReturnType<typeof acquire>>;

  /**
   * The tools as they are now. Asks the server if the connection is not new, once for calls at the same
   * time.
   */
  async function currentTools(server: KnownServer, { lease, tools }: Contact, signal: AbortSignal) {
    if (!lease.isReused) return tools;
    const begun = listing.get(server.key);
    // The call that began the list may have been aborted.
    const found = begun && (await begun.catch(() => null));
    if (found) return found;
    const own = listTools(server, lease.connection, signal);
    listing.set(server.key, own);
    return own.finally(() => listing.delete(server.key));
  }

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
      refresh(server, signal).catch(logged(server)),
    drop: pool.drop,
    size: pool.size,
    close: pool.close,
  };
}

async function listTools(server: KnownServer, connection: Connection, signal: AbortSignal) {
  const tools = await connection.listTools(signal);
  await server.save({ status: "ready", error: null, tools, at: Date.now() });
  return tools;
}

/** Whether a contact was ended by a person or by the end of the process, and not by its own deadline. */
const isGivenUp = ({ aborted, reason }: AbortSignal): boolean =>
  aborted && !(reason instanceof DOMException && reason.name === "TimeoutError");
