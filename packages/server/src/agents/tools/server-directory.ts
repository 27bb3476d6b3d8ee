import type { ToolServerRecord } from "../../store/tools.ts";
import type { KnownServer } from "./contacts.ts";
import { loadClient } from "./load-client.ts";
import type { OperatorServers } from "./operator-servers.ts";
import type { OwnServerOptions } from "./server-auth.ts";

export type ServerDirectory = ReturnType<typeof createServerDirectory>;

/** The servers that a person can use: their own, and those of the operator. */
export function createServerDirectory(operators: OperatorServers, options: OwnServerOptions) {
  const { store } = options;

  /** Null: there is no such server. */
  async function find(ownerId: number, serverId: string): Promise<KnownServer | null> {
    const offered = operators.known(ownerId).find(({ id }) => id === serverId);
    if (offered) return offered;
    const record = await store.read((tx) => tx.toolServer(serverId));
    return record?.owner_id === ownerId ? ownServer(record, options) : null;
  }

  return {
    find,
    /** Their own first, oldest first. */
    async all(ownerId: number): Promise<KnownServer[]> {
      const records = await store.read((tx) => tx.toolServers(ownerId));
      return [...records.map((each) => ownServer(each, options)), ...operators.known(ownerId)];
    },
    async findAll(ownerId: number, ids: readonly string[]): Promise<KnownServer[]> {
      // Reads each server on its own: parsing the tools of all at once takes long.
      const found = await Promise.all(ids.map((id) => find(ownerId, id)));
      return found.filter((server) => server !== null);
    },
  };
}

/** Connections to a server are not used any more, on any node, once it has another address. */
export const connectionKey = ({ id, url }: Pick<KnownServer, "id" | "url">) => `${id} ${url}`;

/** A server that a person added. */
function ownServer(record: ToolServerRecord, options: OwnServerOptions): KnownServer {
  const { secrets: _, ...known } = record;
  const { id, url } = known;
  const { store, fetch } = options;
  return {
    ...known,
    operator: false,
    key: connectionKey(known),
    connect: async (timeouts, signal) => {
      const { connectByHttp, createServerAuth } = await loadClient();
      return connectByHttp(
        { url, fetch, auth: createServerAuth(record, options) },
        timeouts,
        signal,
      );
    },
    save: (state) => store.write((tx) => tx.setToolServerState({ id, url }, state)),
  };
}
