import { toolSecretsBinding } from "../../domain/tools.ts";
import type { GuardedFetch } from "../../security/guarded-fetch.ts";
import type { Vault } from "../../security/vault.ts";
import type { Store } from "../../store/store.ts";
import type { ToolServerRecord } from "../../store/tools.ts";
import { httpConnection } from "./connection.ts";
import type { KnownServer } from "./contacts.ts";

export interface OwnServerOptions {
  readonly store: Pick<Store, "read" | "write">;
  readonly vault: Vault;
  readonly fetch: GuardedFetch;
}

/** A server that a person added. */
export function ownServer(record: ToolServerRecord, options: OwnServerOptions): KnownServer {
  const { id, name, url, status, error, tools, contacted_at, secrets } = record;
  const { store, vault, fetch } = options;
  const open = () => secrets && vault.open(secrets, toolSecretsBinding(record));
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
    connect(timeouts, signal) {
      const token = open() ?? undefined;
      return httpConnection({ url, fetch, auth: { token: async () => token } }, timeouts, signal);
    },
    save: (state) => store.write((tx) => tx.setToolServerState(id, state)),
  };
}
