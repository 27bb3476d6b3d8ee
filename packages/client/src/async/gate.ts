interface Waiter {
  resolve(): void;
  reject(error: Error): void;
}

/** A condition that can be waited for, and that can become false again. */
export interface Gate {
  /** Resolves when the gate is open. */
  whenOpen(): Promise<void>;
  open(): void;
  close(): void;
  /** Closes the gate and rejects everything that waits for it. */
  closeWith(error: Error): void;
}

export function createGate(): Gate {
  let isOpen = false;
  let waiters: Waiter[] = [];
  const takeWaiters = () => {
    const all = waiters;
    waiters = [];
    return all;
  };
  return {
    whenOpen() {
      if (isOpen) return Promise.resolve();
      const opened = new Promise<void>((resolve, reject) => waiters.push({ resolve, reject }));
      // A caller that ignores the promise must not cause an unhandled rejection.
      opened.catch(() => {});
      return opened;
    },
    open() {
      isOpen = true;
      for (const { resolve } of takeWaiters()) resolve();
    },
    close() {
      isOpen = false;
    },
    closeWith(error) {
      isOpen = false;
      for (const { reject } of takeWaiters()) reject(error);
    },
  };
}
