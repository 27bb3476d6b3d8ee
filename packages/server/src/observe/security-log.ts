import type { Logger } from "./log.ts";

/** The events of the security log. The names are stable: operators search for them. */
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
  "operator_added",
  "operator_removed",
] as const;
export type SecurityEvent = (typeof securityEvents)[number];

/** The fields of an event. None of them, except the user agent, contains what a user typed. */
export interface SecurityDetails {
  /** The username of an existing account. */
  readonly account?: string | null;
  readonly origin?: { readonly address: string; readonly user_agent: string | null };
  readonly session_id?: string;
  /** The name of the service key that the call was made with. */
  readonly service_key?: string;
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
  /** Records at most once a minute per event and key: for events that anybody can cause at will. */
  recordOnce(event: SecurityEvent, key: string, details: SecurityDetails): void;
}

const ONCE_MS = 60_000;
/** Keys remembered at most. When there are more, all are forgotten and may be recorded again. */
const MAX_KEYS = 10_000;

export function securityLog(log: Logger): SecurityLog {
  let recorded = new Set<string>();
  let since = performance.now();

  function record(event: SecurityEvent, { origin, ...details }: SecurityDetails): void {
    log.info({ event, ...details, ...originFields(origin) }, "security event");
  }

  return {
    record,
    recordOnce(event, key, details) {
      const now = performance.now();
      if (now - since > ONCE_MS || recorded.size >= MAX_KEYS) {
        recorded = new Set();
        since = now;
      }
      const eventKey = `${event} ${key}`;
      if (recorded.has(eventKey)) return;
      recorded.add(eventKey);
      record(event, details);
    },
  };
}

const originFields = (origin: SecurityDetails["origin"]) =>
  origin && { address: origin.address, user_agent: origin.user_agent };
