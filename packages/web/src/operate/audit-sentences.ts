import type { AuditAction, AuditEntry } from "@parley/protocol";

type Sentence = (entry: AuditEntry) => string;

/** What happened, as a sentence. Names of accounts have an @. */
export function auditSentence(entry: AuditEntry): string {
  const sentence: Sentence | undefined = sentences[entry.action as AuditAction];
  return sentence ? sentence(entry) : `${actionLabel(entry.action)}${about(entry)}`;
}

/** The name of an action in words, such as «Sign in failed». */
export function actionLabel(action: string): string {
  const words = action.replaceAll("_", " ").replace("oidc", "single sign-on");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Actions that may be attempts at something that is not allowed. */
export const isRefusal = (action: string) => /_(?:failed|refused)$|^throttled$/.test(action);

const about = ({ account }: AuditEntry) => (account === null ? "" : `: @${account}`);
const who = ({ account }: AuditEntry) => (account === null ? "Somebody" : `@${account}`);
const detail = ({ details }: AuditEntry, name: string) => String(details[name] ?? "");
const key = ({ service_key }: AuditEntry) => `the service key «${service_key ?? "?"}»`;
const Key = ({ service_key }: AuditEntry) => `The service key «${service_key ?? "?"}»`;

/** By whom something was done that operators, service keys and commands can do. */
function by(entry: AuditEntry): string {
  if (entry.operator !== null) return ` by @${entry.operator}`;
  return entry.service_key !== null ? ` by ${key(entry)}` : " by a command";
}

const sentences: Record<AuditAction, Sentence> = {
  sign_up: (entry) =>
    entry.address === null
      ? `The account ${who(entry)} was created by a command`
      : `${who(entry)} created an account`,
  sign_in: (entry) => {
    const method = detail(entry, "method");
    if (method === "service_key") return `${Key(entry)} issued a token for ${who(entry)}`;
    return `${who(entry)} signed in${method === "oidc" ? " by single sign-on" : ""}`;
  },
  sign_in_failed: (entry) => {
    if (detail(entry, "method") === "oidc") return "A sign-in by single sign-on failed";
    const reason = detail(entry, "reason");
    if (reason === "invite_code") return "A sign-up with a wrong invite code failed";
    if (entry.account === null) return "A sign-in to an account that does not exist failed";
    if (reason === "suspended") {
      return `A sign-in to ${who(entry)} was refused, because the account is suspended`;
    }
    return `A sign-in to ${who(entry)} failed${reason === "second_factor" ? ": the code was wrong" : ""}`;
  },
  throttled: (entry) => {
    const operation = detail(entry, "operation");
    if (entry.account === null) return `A client called ${operation} too often`;
    if (operation === "signIn") return `Sign-in to ${who(entry)} was tried too often`;
    return `${who(entry)} called ${operation} too often`;
  },
  session_ended: (entry) => {
    const reason = detail(entry, "reason");
    if (reason === "signed_out") return `${who(entry)} signed out`;
    if (reason === "tokens_revoked") return `${Key(entry)} ended all sessions of ${who(entry)}`;
    return `A session of ${who(entry)} was ended`;
  },
  password_changed: (entry) => `${who(entry)} changed their password`,
  password_change_failed: (entry) => `A change of the password of ${who(entry)} failed`,
  password_confirmed: (entry) => `${who(entry)} confirmed their password`,
  password_confirmation_failed: (entry) => `${who(entry)} confirmed a wrong password`,
  password_reset: (entry) =>
    entry.address === null
      ? `The password of ${who(entry)} was reset by a command`
      : `${who(entry)} set a new password with a reset link`,
  password_reset_created: (entry) =>
    `A link to reset the password of ${who(entry)} was made${by(entry)}`,
  password_reset_refused: () => "A reset link that does not work was tried",
  second_factor_asked: (entry) => `${who(entry)} was asked for a code, after the right password`,
  second_factor_added: (entry) => `${who(entry)} turned their second factor on`,
  second_factor_failed: (entry) => `A change of the second factor of ${who(entry)} failed`,
  second_factor_removed: (entry) =>
    entry.address === null
      ? `The second factor of ${who(entry)} was removed by a command`
      : `${who(entry)} turned their second factor off`,
  recovery_codes_renewed: (entry) => `${who(entry)} got new recovery codes`,
  agent_key_set: (entry) => `${who(entry)} stored a key for ${detail(entry, "provider")}`,
  agent_key_removed: (entry) => `${who(entry)} removed their key for ${detail(entry, "provider")}`,
  agent_key_tested: (entry) =>
    `${who(entry)} tested a key for ${detail(entry, "provider")}: it ${entry.details.works ? "works" : "does not work"}`,
  agent_tools_set: (entry) =>
    `${who(entry)} changed the tools that ${detail(entry, "agent")} may use`,
  tool_server_added: (entry) => `${who(entry)} added a tool server`,
  tool_server_changed: (entry) => `${who(entry)} changed a tool server`,
  tool_server_removed: (entry) => `${who(entry)} removed a tool server`,
  master_key_rotated: () => "The master key was rotated",
  oidc_account_created: (entry) => `${who(entry)} signed in by single sign-on for the first time`,
  oidc_account_linked: (entry) => `${who(entry)} was linked to single sign-on`,
  oidc_token_refused: () => "A token of single sign-on was refused",
  operator_added: (entry) => `${who(entry)} became an operator`,
  operator_removed: (entry) => `${who(entry)} is no longer an operator`,
  service_key_created: (entry) => `${Key(entry)} was created`,
  service_key_revoked: (entry) => `${Key(entry)} was revoked`,
  service_key_refused: () => "A service key was refused",
  acted_on_behalf: (entry) =>
    `${Key(entry)} called ${detail(entry, "operation")} for ${who(entry)}`,
  messages_imported: (entry) => `${Key(entry)} imported messages into a conversation`,
  account_suspended: (entry) => `${who(entry)} was suspended${by(entry)}`,
  account_restored: (entry) => `${who(entry)} was restored${by(entry)}`,
  message_reported: (entry) =>
    `A message of ${who(entry)} was reported by @${detail(entry, "reporter")}`,
  report_resolved: (entry) => `A report of a message of ${who(entry)} was resolved${by(entry)}`,
  account_exported: (entry) => `${who(entry)} downloaded their data`,
  account_erased: (entry) =>
    entry.address !== null && entry.operator === null && entry.service_key === null
      ? `${who(entry)} deleted their account`
      : `${who(entry)} was erased${by(entry)}`,
  account_deletion_refused: (entry) =>
    `${who(entry)} tried to delete their account with a wrong password`,
  webhook_created: (entry) => `A webhook was created${by(entry)}`,
  webhook_changed: (entry) => `A webhook was changed${by(entry)}`,
  webhook_deleted: (entry) => `A webhook was deleted${by(entry)}`,
  webhook_replayed: (entry) => `A delivery to a webhook was sent again${by(entry)}`,
  webhook_disabled: (entry) =>
    entry.details.reason === "creator"
      ? `A webhook of ${who(entry)} was disabled, because they may not read its conversation any more`
      : "A webhook was disabled, because its receiver is gone",
  incoming_hook_created: (entry) => `${who(entry)} created an incoming hook`,
  incoming_hook_deleted: (entry) => `${who(entry)} deleted an incoming hook`,
  agent_token_created: (entry) => `${who(entry)} created a token for an external agent`,
  agent_token_revoked: (entry) => `${who(entry)} revoked a token of an external agent`,
  agent_token_refused: () => "An unknown token of an external agent was refused",
};
