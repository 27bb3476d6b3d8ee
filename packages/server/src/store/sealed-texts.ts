import { column, type Sql } from "./sql.ts";
import type { WebhookRecord } from "./webhooks.ts";

/** What is sealed with the master key, whatever it is. */
export const sealedTextReads = {
  /** The beginnings of all sealed texts, which name the master key: `v1.<id>`. Each once. */
  sealPrefixes: (db: Sql) =>
    column<string>(
      db,
      `SELECT substr(sealed, 1, 15) AS prefix FROM agent_keys
       UNION SELECT substr(secret, 1, 15) FROM webhooks
       UNION SELECT substr(secret, 1, 15) FROM second_factors
       UNION SELECT substr(secrets, 1, 15) FROM tool_servers WHERE secrets IS NOT NULL`,
    ),
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

export const SEALED_KEYS = "SELECT owner_id, provider, sealed FROM agent_keys";
export const SEALED_WEBHOOKS = "SELECT id, secret FROM webhooks";
export const SEALED_SECOND_FACTORS = "SELECT account_id, secret FROM second_factors";
export const SEALED_TOOL_SECRETS =
  "SELECT id, owner_id, secrets FROM tool_servers WHERE secrets IS NOT NULL";
