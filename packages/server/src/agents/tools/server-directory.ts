import type { KnownServer } from "./contacts.ts";
import type { OperatorServers } from "./operator-servers.ts";
import { ownServer } from "./own-server.ts";
import type { OwnServerOptions } from "./server-auth.ts";

/** The servers that a person can use: their own, and those of the operator. */
export interface ServerDirectory {
  /** Their own first, oldest first. */
  all(ownerId: number): Promise<KnownServer[]>;
  /** Null: there is no such server. */
  find(ownerId: number, serverId: string): Promise<KnownServer | null>;
  findAll(ownerId: number, ids: readonly string[]): Promise<KnownServer[]>;
}

export function serverDirectory(
  operators: OperatorServers,
  options: OwnServerOptions,
): ServerDirectory {
  const { store } = options;

  async function find(ownerId: number, serverId: string): Promise<KnownServer | null> {
    const offered = operators.known(ownerId).find(({ id }) => id === serverId);
    if (offered) return offered;
    const record = await store.read((tx) => tx.toolServer(serverId));
    return record?.owner_id === ownerId ? ownServer(record, options) : null;
  }

  return {
    async all(ownerId) {
      const records = await store.read((tx) => tx.toolServers(ownerId));
      return [...records.map((record) => ownServer(record, options)), ...operators.known(ownerId)];
    },
    find,
    async findAll(ownerId, ids) {
      // Reads each server on its own: parsing the tools of all at once takes long.
      const found = await Promise.all(ids.map((id) => find(ownerId, id)));
      return found.filter((server) => server !== null);
    },
  };
}
