import type { Logger } from "../observe/log.ts";
import type { Client } from "../realtime/hub.ts";
import type { Store } from "../store/store.ts";

const PURGE_MS = 60 * 60 * 1000;
/** Sessions deleted per unit of work, so that other units are not held up. */
const PURGE_BATCH = 1000;

export interface SessionUpkeepOptions {
  readonly store: Pick<Store, "endedSessions" | "write">;
  readonly hub: { clients(): Iterable<Client>; endSession(sessionId: string): void };
  readonly log: Logger;
  /** How often to look for sessions that another process has ended; null if nodes notify each other. */
  readonly watchMs: number | null;
}

/** Closes the sockets of sessions that other processes have ended, and deletes expired sessions. */
export function sessionUpkeep({ store, hub, log, watchMs }: SessionUpkeepOptions) {
  async function closeEnded(): Promise<void> {
    const ids = new Set([...hub.clients()].map(({ session_id }) => session_id));
    for (const id of await store.endedSessions([...ids])) hub.endSession(id);
  }

  async function purge(): Promise<void> {
    const now = Date.now();
    let purged: number;
    do {
      purged = await store.write((tx) => tx.purgeSessions(now, PURGE_BATCH));
    } while (purged === PURGE_BATCH);
  }

  const purging = repeat(purge, PURGE_MS, (err) => log.error({ err }, "session purge failed"));
  const watching =
    watchMs === null
      ? null
      : repeat(closeEnded, watchMs, (err) => log.error({ err }, "session watch failed"));
  return {
    async stop(): Promise<void> {
      await Promise.all([purging.stop(), watching?.stop()]);
    },
  };
}

/** Runs the work now and then periodically, never twice at once, until it is stopped. */
function repeat(work: () => Promise<void>, everyMs: number, failed: (error: unknown) => void) {
  let running: Promise<void> | null = null;
  const once = () => {
    running ??= work()
      .catch(failed)
      .finally(() => {
        running = null;
      });
  };
  once();
  const timer = setInterval(once, everyMs);
  timer.unref();
  return {
    async stop(): Promise<void> {
      clearInterval(timer);
      await running;
    },
  };
}
