import type { Store } from "./store.ts";

/** Resolves in the next iteration of the event loop, when what has arrived at the sockets was read. */
export const nextIteration = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** After this time, the loop runs other work that waits: sockets and timers. */
const SLICE_MS = 10;
/** A resumed caller begins its work some microtasks later. */
const MICROTASKS = 16;

/**
 * Returns a function to wait for a share of the event loop. Callers that are woken at the same moment,
 * such as all turns whose transaction has committed, would otherwise run one after another in a single
 * iteration of the loop. They are resumed in the order of their calls.
 */
export function loopShares(now: () => number = () => performance.now()): () => Promise<void> {
  const waiting: (() => void)[] = [];
  let isRunning = false;

  async function run(): Promise<void> {
    isRunning = true;
    while (waiting.length > 0) {
      await nextIteration();
      const startedAt = now();
      while (waiting.length > 0 && now() - startedAt < SLICE_MS) {
        waiting.shift()?.();
        for (let task = 0; task < MICROTASKS; task++) await null;
      }
    }
    isRunning = false;
  }

  return () =>
    new Promise((resolve) => {
      waiting.push(resolve);
      if (!isRunning) void run();
    });
}

/** The process has one event loop, so turns and tool servers share one queue for it. */
export const shareOfLoop = loopShares();

/** The store for work that many turns do at the same moment: each waits for its share of the loop. */
export const yieldingStore = (store: Store): Store => ({
  ...store,
  async read(unit) {
    await shareOfLoop();
    const result = await store.read(unit);
    await shareOfLoop();
    return result;
  },
  async write(unit) {
    const result = await store.write(unit);
    await shareOfLoop();
    return result;
  },
});
