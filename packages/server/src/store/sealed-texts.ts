import type { Sql } from "./sql.ts";
import type { WebhookRecord } from "./webhooks.ts";

/** What is sealed with the master key, whatever it is. */
export const sealedTextReads = {
  /** The beginnings of all sealed texts, which name the master key: `v1.<id>`. Each once. */
  sealPrefixes: (db: Sql) =>
    db.column<string>`
      SELECT substr(sealed, 1, 15) AS prefix FROM agent_keys
      UNION SELECT substr(secret, 1, 15) FROM webhooks
      UNION SELECT substr(secret, 1, 15) FROM second_factors
      UNION SELECT substr(secrets, 1, 15) FROM tool_servers WHERE secrets IS NOT NULL`,
};

/** Everything that is sealed with the master key, as it is stored. */
export interface SealedTexts {
  readonly keys: readonly SealedKey[];
  readonly webhooks: readonly Pick<WebhookRecord, "id" | "secret">[];
  readonly secondFactors: readonly SealedSecondFactor[];
  readonly toolSecrets: readonly SealedToolSecrets[];
}

export interface SealedKey {
  readonly owner_id: number;
  readonly provider: string;
  readonly sealed: string;
}

export interface SealedSecondFactor {
  readonly account_id: number;
  /** Sealed by the vault. */
  readonly secret: string;
}

export interface SealedToolSecrets {
  readonly id: string;
  readonly owner_id: number;
  readonly secrets: string;
}

export const NOTHING_SEALED: SealedTexts = {
  keys: [],
  webhooks: [],
  secondFactors: [],
  toolSecrets: [],
};

/** How all of each kind are read. */
export const SEALED: Readonly<Record<keyof SealedTexts, string>> = {
  keys: "SELECT owner_id, provider, sealed FROM agent_keys",
  webhooks: "SELECT id, secret FROM webhooks",
  secondFactors: "SELECT account_id, secret FROM second_factors",
  toolSecrets: "SELECT id, owner_id, secrets FROM tool_servers WHERE secrets IS NOT NULL",
};
