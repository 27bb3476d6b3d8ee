import type { AuditAction } from "@parley/protocol";
import type { NewAuditEntry } from "../store/audit-log.ts";
import type { Awaitable } from "../store/awaitable.ts";
import type { Store, WriteTx } from "../store/store.ts";

/** Ids, and names of accounts and keys, that entries may have. */
type Named =
  | "session_id"
  | "service_key"
  | "operator"
  | "operation"
  | "provider"
  | "issuer"
  | "report"
  | "reporter"
  | "webhook"
  | "tool_server"
  | "agent"
  | "conversation"
  | "agent_token";

/** The fields of an entry. None of them, except the user agent, contains what a user typed. */
export interface AuditDetails extends Readonly<Partial<Record<Named, string>>> {
  /** The username of an existing account. */
  readonly account?: string | null;
  readonly origin?: { readonly address: string; readonly user_agent: string | null };
  readonly method?: "password" | "oidc" | "service_key";
  readonly second_factor?: "totp" | "recovery_code";
  readonly reason?:
    | "signed_out"
    | "revoked"
    | "tokens_revoked"
    | "suspended"
    | "second_factor"
    | "invite_code"
    | "creator";
  readonly sessions_ended?: number;
  readonly keys_resealed?: number;
  /** The number of imported messages. */
  readonly messages?: number;
  readonly works?: boolean;
}

/** Records an entry in the unit of work that it was made for. */
export type Recorder = (action: AuditAction, details: AuditDetails) => Awaitable<void>;

export type AuditLog = ReturnType<typeof createAuditLog>;

/** Where the lines are written: the log, or the output of a command. */
interface AuditLines {
  info(entry: object, message: string): void;
  error(failure: { readonly err: unknown; readonly event: AuditAction }, message: string): void;
}

const ONCE_MS = 60_000;
/** Keys remembered at most. When there are more, all are forgotten and may be recorded again. */
const MAX_KEYS = 10_000;

/** The audit log: every entry is stored, and written as a log line too. */
export function createAuditLog(log: AuditLines, store: Pick<Store, "write">) {
  let recorded = new Set<string>();
  let since = performance.now();

  const writeLine = ({ action, account, details }: NewAuditEntry) =>
    log.info({ event: action, account, ...details }, "security event");

  /** Runs a unit of work. Its entries are stored with its changes, and logged once it has committed. */
  async function write<Result>(
    unit: (tx: WriteTx, record: Recorder) => Awaitable<Result>,
  ): Promise<Result> {
    let entries: NewAuditEntry[] = [];
    const result = await store.write((tx) => {
      // The unit may run again.
      entries = [];
      return unit(tx, (action, details) => {
        const entry = entryOf(action, details);
        entries.push(entry);
        return tx.insertAuditEntry(entry);
      });
    });
    entries.forEach(writeLine);
    return result;
  }

  /** Records an entry that belongs to no unit of work. Never rejects. */
  async function record(action: AuditAction, details: AuditDetails): Promise<void> {
    const entry = entryOf(action, details);
    writeLine(entry);
    await store
      .write((tx) => tx.insertAuditEntry(entry))
      .catch((err) => log.error({ err, event: action }, "audit entry was not stored"));
  }

  return {
    write,
    record,
    /** Records at most once a minute per action and key: for what anybody can cause at will. */
    recordOnce(action: AuditAction, key: string, details: AuditDetails): void {
      const now = performance.now();
      if (now - since > ONCE_MS || recorded.size >= MAX_KEYS) {
        recorded = new Set();
        since = now;
      }
      const actionKey = `${action} ${key}`;
      if (recorded.has(actionKey)) return;
      recorded.add(actionKey);
      void record(action, details);
    },
  };
}

const entryOf = (action: AuditAction, { account = null, origin, ...details }: AuditDetails) => ({
  at: Date.now(),
  action,
  account,
  details: {
    ...details,
    ...(origin && { address: origin.address, user_agent: origin.user_agent }),
  },
});
