import { expireToolCalls } from "../domain/tool-calls.ts";
import type { Logger } from "../observe/log.ts";
import type { Awaitable } from "../store/awaitable.ts";
import type { Store, WriteTx } from "../store/store.ts";

const PURGE_MS = 60 * 60 * 1000;
const EXPIRE_MS = 60_000;
const DAY_MS = 24 * PURGE_MS;
/** Rows deleted per unit of work, so that other units are not held up. */
const PURGE_BATCH = 1000;

export interface UpkeepOptions {
  readonly store: Pick<Store, "write">;
  /** Days for which entries of the audit log and resolved reports are kept. */
  readonly auditDays: number;
  readonly log: Logger;
}

/**
 * Deletes expired sessions, old entries of the audit log and reports resolved long ago, now and once an
 * hour. Expires tool calls that nobody decided about once a minute.
 */
export function upkeep({ store, auditDays, log }: UpkeepOptions) {
  let running: Promise<unknown> | null = null;
  let expiring: Promise<unknown> | null = null;

  /** Deletes batches until one is not full. */
  async function purge(what: string, batch: (tx: WriteTx) => Awaitable<number>): Promise<void> {
    try {
      while ((await store.write(batch)) === PURGE_BATCH);
    } catch (err) {
      log.error({ err }, `${what} purge failed`);
    }
  }

  async function purgeAll(): Promise<void> {
    const now = Date.now();
    await purge("session", (tx) => tx.purgeSessions(now, PURGE_BATCH));
    await purge("audit log", (tx) => tx.pruneAuditLog(now - auditDays * DAY_MS, PURGE_BATCH));
    await purge("report", (tx) => tx.pruneReports(now - auditDays * DAY_MS, PURGE_BATCH));
  }

  /** People wait for a decision to expire, so this is done more often than the rest. */
  const expire = () => {
    expiring ??= purge("tool call", (tx) => expireToolCalls(tx, PURGE_BATCH)).finally(() => {
      expiring = null;
    });
  };

  const start = () => {
    running ??= purgeAll().finally(() => {
      running = null;
    });
  };
  start();
  const timer = setInterval(start, PURGE_MS);
  timer.unref();
  expire();
  const expiryTimer = setInterval(expire, EXPIRE_MS);
  expiryTimer.unref();
  return {
    async stop(): Promise<void> {
      clearInterval(timer);
      clearInterval(expiryTimer);
      await Promise.all([running, expiring]);
    },
  };
}
