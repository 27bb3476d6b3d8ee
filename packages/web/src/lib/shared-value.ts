import { useSyncExternalStore } from "react";

/** A value outside of React that components can use. */
export interface SharedValue<Value> {
  get(): Value;
  set(value: Value): void;
  /** The value in a component, which renders again when it changes. */
  use(): Value;
}

export function sharedValue<Value>(initial: Value): SharedValue<Value> {
  let current = initial;
  const listeners = new Set<() => void>();
  const subscribe = (listener: () => void) => {
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
    };
  };
  return {
    get: () => current,
    set(value) {
      current = value;
      for (const listener of listeners) listener();
    },
    use: () => useSyncExternalStore(subscribe, () => current),
  };
}
