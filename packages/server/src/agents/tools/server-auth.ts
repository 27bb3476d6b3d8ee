import {
  type AuthProvider,
  OAuthError,
  OAuthErrorCode,
  refreshAuthorization,
  UnauthorizedError,
} from "@modelcontextprotocol/client";
import {
  type OAuthSecrets,
  openToolSecrets,
  sealToolSecrets,
  type ToolSecrets,
} from "../../domain/tools.ts";
import { isTamperProof } from "../../rules/addresses.ts";
import type { GuardedFetch } from "../../security/guarded-fetch.ts";
import type { Vault } from "../../security/vault.ts";
import type { Store } from "../../store/store.ts";
import type { ToolServerRecord } from "../../store/tools.ts";
import { createToolFetch } from "./tool-fetch.ts";

export interface OwnServerOptions {
  readonly store: Pick<Store, "read" | "write">;
  readonly vault: Vault;
  readonly fetch: GuardedFetch;
}

/**
 * What a server that a person added is contacted with. Tokens that expired are refreshed. The client's
 * own provider would do that too, but prints what authorization servers say, which may be secrets.
 */
export function createServerAuth(
  record: ToolServerRecord,
  options: OwnServerOptions,
): AuthProvider {
  const { store, vault } = options;
  let secrets = openToolSecrets(vault, record);
  const inUse = () => secrets.token ?? secrets.oauth?.tokens?.access_token;

  /** Reads what is stored now: another connection or node may have refreshed it. */
  async function reread(): Promise<ToolServerRecord> {
    const current = await store.read((tx) => tx.toolServer(record.id));
    // Tokens for another address are not for this connection.
    if (current?.url !== record.url) throw new UnauthorizedError();
    const refused = inUse();
    secrets = openToolSecrets(vault, current);
    if (inUse() !== undefined && inUse() !== refused) throw new Refreshed();
    return current;
  }

  async function save(current: ToolServerRecord, next: ToolSecrets): Promise<void> {
    const sealed = sealToolSecrets(vault, current, next);
    const isSaved = await store.write((tx) => tx.replaceToolSecrets(current, sealed));
    if (isSaved) secrets = next;
    else await reread();
  }

  async function refresh(): Promise<void> {
    const current = await reread();
    const { oauth } = secrets;
    const refreshToken = oauth?.tokens?.refresh_token;
    if (!oauth || refreshToken === undefined) throw new UnauthorizedError();
    // Authorizations of earlier versions may have begun with http addresses.
    const { token_endpoint } = oauth.metadata;
    if (![record.url, token_endpoint].every(isTamperProof)) throw new UnauthorizedError();
    try {
      const { access_token, refresh_token } = await refreshed(oauth, refreshToken);
      await save(current, {
        ...secrets,
        oauth: { ...oauth, tokens: { access_token, refresh_token } },
      });
    } catch (error) {
      // Another node may have used the refresh token first.
      await reread();
      if (error instanceof OAuthError && error.code === OAuthErrorCode.InvalidGrant) {
        const { tokens: _, ...revoked } = oauth;
        await save(current, { ...secrets, oauth: revoked });
      }
      throw new UnauthorizedError();
    }
  }

  const refreshed = (oauth: OAuthSecrets, refreshToken: string) =>
    refreshAuthorization(oauth.server_url, {
      metadata: oauth.metadata,
      clientInformation: oauth.client,
      refreshToken,
      ...(oauth.resource && { resource: oauth.resource }),
      fetchFn: createToolFetch(options.fetch).fetch,
    });

  return {
    token: async () => inUse(),
    onUnauthorized: async () => {
      await refresh().catch((error) => {
        if (!(error instanceof Refreshed)) throw error;
      });
    },
  };
}

/** Thrown when there is another token to try. */
class Refreshed extends Error {
  override name = "Refreshed";
}
