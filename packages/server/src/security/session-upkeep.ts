import type { Logger } from "../observe/log.ts";
import type { Store } from "../store/store.ts";

const PURGE_MS = 60 * 60 * 1000;
/** Sessions deleted per unit of work, so that other units are not held up. */
const PURGE_BATCH = 1000;

export interface SessionUpkeepOptions {
  readonly store: Pick<Store, "write">;
  readonly log: Logger;
}

/** Deletes expired sessions, now and once an hour. */
export function sessionUpkeep({ store, log }: SessionUpkeepOptions) {
  let running: Promise<void> | null = null;

  async function purge(): Promise<void> {
    const now = Date.now();
    let purged: number;
    do {
      purged = await store.write((tx) => tx.purgeSessions(now, PURGE_BATCH));
    } while (purged === PURGE_BATCH);
  }

  const start = () => {
    running ??= purge()
      .catch((err) => log.error({ err }, "session purge failed"))
      .finally(() => {
        running = null;
      });
  };
  start();
  const timer = setInterval(start, PURGE_MS);
  timer.unref();
  return {
    async stop(): Promise<void> {
      clearInterval(timer);
      await running;
    },
  };
}
