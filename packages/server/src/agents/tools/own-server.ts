import type { ToolServerRecord } from "../../store/tools.ts";
import type { KnownServer } from "./contacts.ts";
import { loadClient } from "./load-client.ts";
import type { OwnServerOptions } from "./server-auth.ts";

/** A server that a person added. */
export function ownServer(record: ToolServerRecord, options: OwnServerOptions): KnownServer {
  const { id, name, url, status, error, tools, contacted_at } = record;
  const { store, fetch } = options;
  return {
    id,
    name,
    url,
    status,
    error,
    tools,
    contacted_at,
    operator: false,
    key: id,
    owner_id: record.owner_id,
    connect: async (timeouts, signal) => {
      const { httpConnection, serverAuth } = await loadClient();
      return httpConnection({ url, fetch, auth: serverAuth(record, options) }, timeouts, signal);
    },
    save: (state) => store.write((tx) => tx.setToolServerState(id, state)),
  };
}
