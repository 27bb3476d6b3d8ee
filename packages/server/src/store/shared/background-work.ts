import type { BackgroundKind, BackgroundWork } from "../background-work.ts";
import type { Unavailable } from "../store.ts";

export interface BackgroundRunner extends BackgroundWork {
  /** Runs work of a kind and records its outcome. Never rejects. */
  run(kind: BackgroundKind, work: () => unknown): Promise<void>;
}

/** Records that commits are refused, once for each, and that they succeed again. */
export function watchWrites(background: BackgroundRunner) {
  let isRefused = false;
  return (refusal: Unavailable | null): void => {
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
