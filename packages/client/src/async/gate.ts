interface Waiter {
  resolve(): void;
  reject(error: Error): void;
}

/** Something to wait for that comes and goes. */
export interface Gate {
  /** Resolves at once while it is open, otherwise when it opens. */
  passed(): Promise<void>;
  open(): void;
  close(): void;
  /** Sends all away who wait. */
  refuse(error: Error): void;
}

export function gate(): Gate {
  let isOpen = false;
  let waiting: Waiter[] = [];
  const dismiss = () => {
    const all = waiting;
    waiting = [];
    return all;
  };
  return {
    passed() {
      if (isOpen) return Promise.resolve();
      const passing = new Promise<void>((resolve, reject) => waiting.push({ resolve, reject }));
      // Nobody has to wait for what they have started.
      passing.catch(() => {});
      return passing;
    },
    open() {
      isOpen = true;
      for (const { resolve } of dismiss()) resolve();
    },
    close() {
      isOpen = false;
    },
    refuse(error) {
      isOpen = false;
      for (const { reject } of dismiss()) reject(error);
    },
  };
}
