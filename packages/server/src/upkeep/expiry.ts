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
  let soon: NodeJS.Timeout | undefined;

  /** Deletes or ends batches until one is not full, or the signal aborts. `batch` returns its rows. */
  async function purge(
    what: string,
    signal: AbortSignal,
    batch: (tx: WriteTx, size: number) => Awaitable<number>,
    size = PURGE_BATCH,
  ): Promise<void> {
    try {
      while (!signal.aborted && (await store.write((tx) => batch(tx, size))) === size);
    } catch (err) {
      log.error({ err }, `${what} failed`);
    }
  }

  async function purgeAll(signal: AbortSignal): Promise<void> {
    const now = Date.now();
    const before = now - auditDays * DAY_MS;
    await purge("session purge", signal, (tx, size) => tx.purgeSessions(now, size));
    await purge("audit log purge", signal, (tx, size) => tx.pruneAuditLog(before, size));
    await purge("report purge", signal, (tx, size) => tx.pruneReports(before, size));
  }

  async function expireCalls(signal: AbortSignal): Promise<void> {
    await purge("tool call expiry", signal, expireToolCalls, EXPIRE_BATCH);
    if (signal.aborted) return;
    const delayMs = await msUntilNextExpiry().catch((err) => {
      log.error({ err }, "tool call expiry check failed");
      return EXPIRE_MS;
    });
    clearTimeout(soon);
    if (delayMs < EXPIRE_MS) soon = setTimeout(expiring.run, delayMs).unref();
  }

  async function msUntilNextExpiry(): Promise<number> {
    const now = Date.now();
    const [next] = await store.read((tx) => tx.expiredToolCalls(now + EXPIRE_MS, 1));
    return Math.max((next?.expires_at ?? now + EXPIRE_MS) - now, MIN_EXPIRE_MS);
  }

  const purging = runRegularly(PURGE_MS, purgeAll);
  const expiring = runRegularly(EXPIRE_MS, expireCalls);
  return {
    async stop(): Promise<void> {
      await Promise.all([purging.stop(), expiring.stop()]);
      clearTimeout(soon);
    },
  };
}
