/** What the stores of data and files do for all units of work together, or by themselves. */
export type BackgroundKind =
  /** Commits, of which the disk or the database server refused the latest. */
  | "writes"
  | "search_indexing"
  | "checkpoint"
  | "pruning"
  | "restore_mark"
  | "file_deletion"
  | "file_checks";

/**
 * Reports failures of a store's background work. A store whose background work fails still serves:
 * what is stored is safe, but new messages are not found, files grow, or a restore goes unnoticed. Only
 * a checkpoint with a disk error stops the store.
 */
export interface BackgroundWork {
  /** Failures since the store was opened, for every kind of work that this store does. */
  failures(): ReadonlyMap<BackgroundKind, number>;
  /** The kinds whose latest run has failed. */
  failing(): readonly BackgroundKind[];
  /**
   * Calls the listener when a kind begins to fail, with the error, and with null when it succeeds
   * again. Set once.
   */
  onChange(listener: (kind: BackgroundKind, error: unknown) => void): void;
}

export interface BackgroundRunner extends BackgroundWork {
  /** Runs work of a kind and records its outcome. Never rejects. */
  run(kind: BackgroundKind, work: () => unknown): Promise<void>;
}

/** Records that commits are refused, once for each, and that they succeed again. */
export function watchWrites(background: BackgroundRunner) {
  let isRefused = false;
  return (refusal: Error | null): void => {
    if (!refusal && !isRefused) return;
    isRefused = refusal !== null;
    void background.run("writes", () => {
      if (refusal) throw refusal;
    });
  };
}

/** `kinds` are those that the store does. */
export function backgroundRunner(...kinds: BackgroundKind[]): BackgroundRunner {
  const failures = new Map<BackgroundKind, number>(kinds.map((kind) => [kind, 0]));
  const failing = new Set<BackgroundKind>();
  let listener: (kind: BackgroundKind, error: unknown) => void = () => {};

  return {
    async run(kind, work) {
      try {
        await work();
        if (failing.delete(kind)) listener(kind, null);
      } catch (error) {
        failures.set(kind, (failures.get(kind) ?? 0) + 1);
        if (failing.has(kind)) return;
        failing.add(kind);
        listener(kind, error);
      }
    },
    failures: () => failures,
    failing: () => [...failing],
    onChange: (handler) => {
      listener = handler;
    },
  };
}
