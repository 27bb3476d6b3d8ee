import type { Logger } from "./log.ts";

/** Everything that the security log tells of. The names are stable: operators search for them. */
export const securityEvents = [
  "sign_up",
  "sign_in",
  "sign_in_failed",
  "throttled",
  "session_ended",
  "password_changed",
  "password_change_failed",
  "password_reset",
  "agent_key_set",
  "agent_key_removed",
  "agent_key_tested",
  "master_key_rotated",
  "oidc_account_created",
  "oidc_account_linked",
  "oidc_token_refused",
] as const;
export type SecurityEvent = (typeof securityEvents)[number];

/** What may be told. Nothing that somebody typed is among it, but for the user agent. */
export interface SecurityDetails {
  /** The username of an account that exists. */
  readonly account?: string | null;
  readonly origin?: { readonly address: string; readonly user_agent: string | null };
  readonly session_id?: string;
  readonly method?: "password" | "oidc";
  readonly operation?: string;
  readonly provider?: string;
  readonly reason?: "signed_out" | "revoked";
  readonly sessions_ended?: number;
  readonly keys_resealed?: number;
  readonly works?: boolean;
  readonly issuer?: string;
}

export interface SecurityLog {
  record(event: SecurityEvent, details: SecurityDetails): void;
  /** At most once a minute for the same event and key: for what somebody can cause at will. */
  recordOnce(event: SecurityEvent, key: string, details: SecurityDetails): void;
}

const ONCE_MS = 60_000;
/** So many keys are remembered at the most; beyond it some are told of again. */
const KEYS = 10_000;

export function securityLog(log: Logger): SecurityLog {
  let told = new Set<string>();
  let since = performance.now();

  function record(event: SecurityEvent, { origin, ...details }: SecurityDetails): void {
    log.info({ event, ...details, ...originFields(origin) }, "security event");
  }

  return {
    record,
    recordOnce(event, key, details) {
      const now = performance.now();
      if (now - since > ONCE_MS || told.size >= KEYS) {
        told = new Set();
        since = now;
      }
      const about = `${event} ${key}`;
      if (told.has(about)) return;
      told.add(about);
      record(event, details);
    },
  };
}

const originFields = (origin: SecurityDetails["origin"]) =>
  origin && { address: origin.address, user_agent: origin.user_agent };
