/** A value that a backend returns synchronously or as a promise. Callers await it, or use `after`. */
export type Awaitable<Value> = Value | Promise<Value>;

/**
 * Continues with a value: synchronously, unless it is a promise. Used on the path of every message,
 * which then needs no promises on a store that answers synchronously.
 */
export const after = <Value, Result>(
  value: Awaitable<Value>,
  next: (value: Value) => Awaitable<Result>,
): Awaitable<Result> => (value instanceof Promise ? value.then(next) : next(value));
