import type { SealedKey } from "../agents.ts";
import type { SealedSecondFactor } from "../second-factors.ts";
import type { WebhookRecord } from "../webhooks.ts";

/** Everything that is sealed with the master key, as it is stored. */
export interface SealedTexts {
  readonly keys: readonly SealedKey[];
  readonly webhooks: readonly Pick<WebhookRecord, "id" | "secret">[];
  readonly secondFactors: readonly SealedSecondFactor[];
}

export const NOTHING_SEALED: SealedTexts = { keys: [], webhooks: [], secondFactors: [] };

export const SEALED_KEYS = "SELECT owner_id, provider, sealed FROM agent_keys";
export const SEALED_WEBHOOKS = "SELECT id, secret FROM webhooks";
export const SEALED_SECOND_FACTORS = "SELECT account_id, secret FROM second_factors";
