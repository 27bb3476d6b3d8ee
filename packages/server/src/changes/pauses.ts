/** The pauses of a loop: each ends early when `check` is called and there is a reason to. */
export function createPauses(isStopped: () => boolean) {
  let check = () => {};
  return {
    /** Waits, unless the loop is stopped or `isOver`. */
    async pause(ms: number, isOver = () => false): Promise<void> {
      const hasReason = () => isStopped() || isOver();
      if (hasReason()) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      check = () => {
        if (hasReason()) resolve();
      };
      const timer = setTimeout(resolve, ms);
      await promise;
      clearTimeout(timer);
    },
    check: () => check(),
  };
}
