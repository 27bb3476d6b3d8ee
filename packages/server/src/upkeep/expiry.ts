import { expireToolCalls } from "../domain/tool-calls.ts";
import type { Awaitable } from "../store/awaitable.ts";
import type { WriteTx } from "../store/store.ts";
import { type JobOptions, runRegularly } from "./jobs.ts";

const PURGE_MS = 60 * 60 * 1000;
/** The longest time between two checks: a call that was added since may expire first. */
const EXPIRE_MS = 60_000;
/** The shortest time between two checks: calls stay expired while the store fails. */
const MIN_EXPIRE_MS = 1000;
const DAY_MS = 24 * PURGE_MS;
/** Rows deleted per unit of work, so that other units are not held up. */
const PURGE_BATCH = 1000;
/** Tool calls that expire per unit of work: each takes several statements and an event. */
const EXPIRE_BATCH = 20;

export interface UpkeepOptions extends Pick<JobOptions, "store" | "log"> {
  /** Days for which entries of the audit log and resolved reports are kept. */
  readonly auditDays: number;
}

/**
 * Deletes expired sessions, old entries of the audit log and reports resolved long ago, now and once an
 * hour. Expires tool calls that nobody decided about, each when its time is over.
 */
export function startUpkeep({ store, auditDays, log }: UpkeepOptions) {
  let expiring: Promise<void> = Promise.resolve();
  let expiryTimer: NodeJS.Timeout | undefined;
  let isStopped = false;

  /**
   * Deletes or ends batches until one is not full, or the server stops. `batch` returns how many rows it
   * had.
   */
  async function purge(
    what: string,
    batch: (tx: WriteTx, size: number) => Awaitable<number>,
    size = PURGE_BATCH,
  ): Promise<void> {
    try {
      while (!isStopped && (await store.write((tx) => batch(tx, size))) === size);
    } catch (err) {
      log.error({ err }, `${what} failed`);
    }
  }

  async function purgeAll(): Promise<void> {
    const now = Date.now();
    await purge("session purge", (tx, size) => tx.purgeSessions(now, size));
    await purge("audit log purge", (tx, size) => tx.pruneAuditLog(now - auditDays * DAY_MS, size));
    await purge("report purge", (tx, size) => tx.pruneReports(now - auditDays * DAY_MS, size));
  }

  async function expireCalls(): Promise<void> {
    await purge("tool call expiry", expireToolCalls, EXPIRE_BATCH);
    const delayMs = await msUntilNextExpiry().catch((err) => {
      log.error({ err }, "tool call expiry check failed");
      return EXPIRE_MS;
    });
    if (isStopped) return;
    expiryTimer = setTimeout(expire, delayMs);
    expiryTimer.unref();
  }

  async function msUntilNextExpiry(): Promise<number> {
    const now = Date.now();
    const [next] = await store.read((tx) => tx.expiredToolCalls(now + EXPIRE_MS, 1));
    return Math.max((next?.expires_at ?? now + EXPIRE_MS) - now, MIN_EXPIRE_MS);
  }

  const expire = () => {
    expiring = expireCalls();
  };

  const purging = runRegularly(PURGE_MS, purgeAll);
  expire();
  return {
    async stop(): Promise<void> {
      isStopped = true;
      clearTimeout(expiryTimer);
      await Promise.all([purging.stop(), expiring]);
    },
  };
}
