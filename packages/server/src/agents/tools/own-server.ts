import type { ToolServerRecord } from "../../store/tools.ts";
import { httpConnection } from "./connection.ts";
import type { KnownServer } from "./contacts.ts";
import { type OwnServerOptions, serverAuth } from "./server-auth.ts";

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
    connect: async (timeouts, signal) =>
      httpConnection({ url, fetch, auth: serverAuth(record, options) }, timeouts, signal),
    save: (state) => store.write((tx) => tx.setToolServerState(id, state)),
  };
}
