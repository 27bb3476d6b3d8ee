export interface FairQueueOptions {
  /** How many run at once. */
  readonly running: number;
  /** How many wait in all. */
  readonly waiting: number;
  /** What those are told for whom there is no room. */
  readonly full: () => Error;
}

/** Runs work of a key as soon as it is that key's turn; rejects when there is no room to wait. */
export type FairQueue = <Result>(key: string, work: () => Promise<Result>) => Promise<Result>;

interface Waiter {
  start(): void;
  refuse(error: Error): void;
}

/**
 * Keys take turns, so that one with many waiting does not hold up the others. When there is no room
 * left, the key with the most waiting loses its latest to a key that has fewer.
 */
export function fairQueue({ running: most, waiting: room, full }: FairQueueOptions): FairQueue {
  // In the order in which keys have their turns.
  const lines = new Map<string, Waiter[]>();
  let running = 0;
  let waiting = 0;

  function startNext(): void {
    const [next] = lines;
    if (!next || running >= most) return;
    const [key, line] = next;
    lines.delete(key);
    const waiter = line.shift();
    if (line.length > 0) lines.set(key, line);
    waiting--;
    running++;
    waiter?.start();
  }

  function makeRoom(key: string): void {
    const own = lines.get(key)?.length ?? 0;
    const [longest] = [...lines].sort(([, one], [, other]) => other.length - one.length);
    if (!longest || longest[1].length <= own + 1) throw full();
    waiting--;
    longest[1].pop()?.refuse(full());
  }

  function turn(key: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const line = lines.get(key) ?? [];
      line.push({ start: resolve, refuse: reject });
      lines.set(key, line);
      waiting++;
    });
  }

  return async (key, work) => {
    if (running < most) running++;
    else {
      if (waiting >= room) makeRoom(key);
      await turn(key);
    }
    try {
      return await work();
    } finally {
      running--;
      startNext();
    }
  };
}
