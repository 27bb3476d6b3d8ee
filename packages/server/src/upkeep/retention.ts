import { removeInBatches } from "../domain/messages.ts";
import type { Logger } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import { type MessageRange, SCANNED_IDS } from "../store/message-scans.ts";
import type { Store } from "../store/store.ts";
import { createLease } from "./lease.ts";
import { runRegularly, Stopped } from "./regularly.ts";

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;

export interface RetentionOptions {
  readonly store: Pick<Store, "read" | "write">;
  /** The id of this node. */
  readonly node: string;
  /** Days after which messages are deleted. Null: never. */
  readonly days: number | null;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Deletes old messages if the operator wants it, and counts them. */
export function startRetention({ days, metrics, ...options }: RetentionOptions) {
  let total = 0;
  metrics.watch(
    "parley_retention_deleted_total",
    "counter",
    "Messages deleted because they were older than PARLEY_RETENTION_DAYS.",
    () => total,
  );
  if (days === null) return { stop: async () => {} };
  return deleteRegularly({
    ...options,
    days,
    count: (deleted) => {
      total += deleted;
    },
  });
}

interface DeletionOptions extends Omit<RetentionOptions, "days" | "metrics"> {
  readonly days: number;
  count(deleted: number): void;
}

/**
 * Deletes messages that are older than some days, now and once an hour, on one node at a time and in
 * small units of work. Clients receive the ordinary events of deletions.
 */
function deleteRegularly({ store, node, days, log, count }: DeletionOptions) {
  const held = createLease(store, "retention", node);
  /** When the oldest message of a range was created, by the start of the range. */
  const oldest = new Map<number, number>();
  let isStopped = false;

  /** Called between two steps. */
  async function proceed(): Promise<void> {
    if (isStopped) throw new Stopped();
    await held.renew();
  }

  async function deleteOld(): Promise<void> {
    if (!(await held.claim())) return;
    try {
      await deleteInAll();
    } catch (error) {
      if (!(error instanceof Stopped)) throw error;
    } finally {
      await held.release();
    }
  }

  async function deleteInAll(): Promise<void> {
    const before = Date.now() - days * DAY_MS;
    let messages = 0;
    const last = await store.read((tx) => tx.lastMessageId());
    for (let after = 0; after < last; after += SCANNED_IDS) {
      if ((oldest.get(after) ?? 0) >= before) continue;
      messages += await deleteIn({ after, upTo: after + SCANNED_IDS }, before, last);
    }
    if (messages > 0) log.info({ messages, days }, "old messages deleted");
  }

  async function deleteIn(range: MessageRange, before: number, last: number): Promise<number> {
    let messages = 0;
    const found = await store.read((tx) => tx.scanMessages(range, { before }));
    await removeInBatches(store, found, async (deleted) => {
      messages += deleted;
      count(deleted);
      await proceed();
    });
    await proceed();
    // Transactions that are still open may add messages to the newest ranges.
    if (range.upTo + SCANNED_IDS > last) return messages;
    const at = await store.read((tx) => tx.oldestMessageAt(range));
    oldest.set(range.after, at ?? Number.POSITIVE_INFINITY);
    return messages;
  }

  const job = runRegularly(HOUR_MS, () =>
    deleteOld().catch((err) => log.error({ err }, "deletion of old messages failed")),
  );
  return {
    async stop(): Promise<void> {
      isStopped = true;
      await job.stop();
    },
  };
}
