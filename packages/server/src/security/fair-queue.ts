export interface FairQueueOptions {
  /** How many tasks run at once. */
  readonly running: number;
  /** How many tasks of all keys may wait. */
  readonly waiting: number;
  /** The error for a task that is refused because the queue is full. */
  readonly full: () => Error;
}

/**
 * Runs a task when it is its key's turn. Rejects if the task cannot wait because the queue is full, or
 * if the signal aborts before the task starts.
 */
export type FairQueue = <Result>(
  key: string,
  task: () => Promise<Result>,
  signal?: AbortSignal,
) => Promise<Result>;

interface Waiter {
  start(): void;
  refuse(error: Error): void;
}

/**
 * Limits concurrency, with round-robin over the keys, so that a key with many waiting tasks does not
 * hold up the others. When the queue is full, a new task displaces the latest task of the key with
 * the most waiting, unless its own key has as many.
 */
export function fairQueue({ running: maxRunning, waiting: maxWaiting, full }: FairQueueOptions) {
  // The waiting tasks by key; the order of the keys is the order of their turns.
  const queues = new Map<string, Waiter[]>();
  let running = 0;
  let waiting = 0;

  function startNext(): void {
    const [next] = queues;
    if (!next || running >= maxRunning) return;
    const [key, queue] = next;
    queues.delete(key);
    const waiter = queue.shift();
    if (queue.length > 0) queues.set(key, queue);
    waiting--;
    running++;
    waiter?.start();
  }

  function makeRoom(key: string): void {
    const own = queues.get(key)?.length ?? 0;
    const [longest] = [...queues].sort(([, one], [, other]) => other.length - one.length);
    if (!longest || longest[1].length <= own + 1) throw full();
    waiting--;
    longest[1].pop()?.refuse(full());
  }

  function waitForTurn(key: string, signal?: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const queue = queues.get(key) ?? [];
    const waiter = { start: resolve, refuse: reject };
    queue.push(waiter);
    queues.set(key, queue);
    waiting++;
    const abort = () => {
      remove(key, waiter);
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", abort);
    return promise.finally(() => signal?.removeEventListener("abort", abort));
  }

  /** Removes a task that waits. */
  function remove(key: string, waiter: Waiter): void {
    const queue = queues.get(key);
    const place = queue?.indexOf(waiter) ?? -1;
    if (!queue || place === -1) return;
    queue.splice(place, 1);
    if (queue.length === 0) queues.delete(key);
    waiting--;
  }

  const run: FairQueue = async (key, task, signal) => {
    signal?.throwIfAborted();
    if (running < maxRunning) running++;
    else {
      if (waiting >= maxWaiting) makeRoom(key);
      await waitForTurn(key, signal);
    }
    try {
      return await task();
    } finally {
      running--;
      startNext();
    }
  };
  return run;
}
