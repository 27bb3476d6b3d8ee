interface Waiter {
  /** When the task would begin and end if all keys were served at once, each at the same speed. */
  readonly begin: number;
  readonly end: number;
  start(): void;
  refuse(error: Error): void;
}

/**
 * Limits concurrency, with weighted fair queueing over the keys: the task starts next that would end
 * first if all keys were served at once. With tasks of the same size keys take turns. A key with many
 * or large tasks does not hold up the others. When the queue is full, a new task displaces the latest task of the key with
 * the most waiting, unless its own key has as many.
 */
export function createFairQueue({
  running: maxRunning,
  waiting: maxWaiting,
  full,
}: {
  /** How many tasks run at once. */
  readonly running: number;
  /** How many tasks of all keys may wait. */
  readonly waiting: number;
  /** The error for a task that is refused because the queue is full. */
  readonly full: () => Error;
}) {
  // The waiting tasks by key, in their order.
  const queues = new Map<string, Waiter[]>();
  let running = 0;
  let waiting = 0;
  /** The `begin` of the task that started last. */
  let now = 0;

  function startNext(): void {
    if (running >= maxRunning) return;
    let next: readonly [string, Waiter] | undefined;
    for (const [key, [first]] of queues) {
      if (first && (!next || first.end < next[1].end)) next = [key, first];
    }
    if (!next) return;
    const [key, waiter] = next;
    remove(key, waiter);
    now = Math.max(now, waiter.begin);
    running++;
    waiter.start();
  }

  function makeRoom(key: string): void {
    const own = queues.get(key)?.length ?? 0;
    const [longest] = [...queues].sort(([, one], [, other]) => other.length - one.length);
    if (!longest || longest[1].length <= own + 1) throw full();
    waiting--;
    longest[1].pop()?.refuse(full());
  }

  function waitForTurn(key: string, work: number, signal?: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const queue = queues.get(key) ?? [];
    const begin = Math.max(now, queue.at(-1)?.end ?? 0);
    const waiter = { begin, end: begin + work, start: resolve, refuse: reject };
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

  function remove(key: string, waiter: Waiter): void {
    const queue = queues.get(key);
    const place = queue?.indexOf(waiter) ?? -1;
    if (!queue || place === -1) return;
    queue.splice(place, 1);
    if (queue.length === 0) queues.delete(key);
    waiting--;
  }

  /**
   * Runs a task when it is its key's turn. Rejects if the task cannot wait because the queue is full, or
   * if the signal aborts before the task starts. `work` says how much there is to do, compared with other
   * tasks of the queue.
   */
  return async <Result>(
    key: string,
    task: () => Promise<Result>,
    signal?: AbortSignal,
    work = 1,
  ): Promise<Result> => {
    signal?.throwIfAborted();
    if (running < maxRunning) running++;
    else {
      if (waiting >= maxWaiting) makeRoom(key);
      await waitForTurn(key, work, signal);
    }
    try {
      return await task();
    } finally {
      running--;
      startNext();
    }
  };
}
