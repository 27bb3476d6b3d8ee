/** What the audit log records. The names are stable: operators search for them. */
export const auditActions = [
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
export type AuditAction = (typeof auditActions)[number];
