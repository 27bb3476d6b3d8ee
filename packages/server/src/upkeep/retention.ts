import { removeInBatches } from "../domain/deletions.ts";
import { SCANNED_IDS } from "../store/message-records.ts";
import { createLease, type JobOptions, type Proceed, runRegularly } from "./jobs.ts";

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;

export interface RetentionOptions extends JobOptions {
  /** Days after which messages are deleted. Null: never. */
  readonly days: number | null;
}

/**
 * Counts deleted messages, and deletes those that are older than some days if the operator wants it: now
 * and once an hour, on one node at a time and in small units of work. Clients receive the ordinary events
 * of deletions.
 */
export function startRetention({ store, node, days, log, metrics }: RetentionOptions) {
  let total = 0;
  metrics.watch(
    "parley_retention_deleted_total",
    "counter",
    "Messages deleted because they were older than PARLEY_RETENTION_DAYS.",
    () => total,
  );
  if (days === null) return { stop: async () => {} };
  const held = createLease(store, "retention", node);
  /** When the oldest message of a range was created, by the start of the range. */
  const oldest = new Map<number, number>();

  const deleteOld = async (proceed: Proceed): Promise<void> => {
    const before = Date.now() - days * DAY_MS;
    const totalBefore = total;
    const last = await store.read((tx) => tx.lastMessageId());
    for (let after = 0; after < last; after += SCANNED_IDS) {
      if ((oldest.get(after) ?? 0) >= before) continue;
      const range = { after, upTo: after + SCANNED_IDS };
      const found = await store.read((tx) => tx.scanMessages(range, { before }));
      await removeInBatches(store, found, async (deleted) => {
        total += deleted;
        await proceed();
      });
      await proceed();
      // Transactions that are still open may add messages to the newest ranges.
      if (range.upTo + SCANNED_IDS > last) continue;
      const at = await store.read((tx) => tx.oldestMessageAt(range));
      oldest.set(after, at ?? Number.POSITIVE_INFINITY);
    }
    const messages = total - totalBefore;
    if (messages > 0) log.info({ messages, days }, "old messages deleted");
  };

  return runRegularly(HOUR_MS, (signal) =>
    held
      .hold(signal, deleteOld)
      .catch((err) => log.error({ err }, "deletion of old messages failed")),
  );
}
