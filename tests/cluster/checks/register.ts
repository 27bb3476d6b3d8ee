import { mayHaveHappened, type Operation } from "../history.ts";

/** An operation that sets a value. */
export interface Setting<Value> {
  operation: Operation;
  value: Value;
}

/**
 * The possible final values of a register: the values of all changes that may have been the last. A
 * change was not the last if it was acknowledged before another acknowledged change began.
 */
export function possibleValues<Value>(
  initial: Value,
  settings: readonly Setting<Value>[],
): Set<Value> {
  const happened = settings.filter(({ operation }) => mayHaveHappened(operation));
  const certain = happened.filter(({ operation }) => operation.outcome === "ok");
  const latest = Math.max(...certain.map(({ operation }) => operation.invoked));
  const last = happened.filter(({ operation }) => operation.completed >= latest);
  const values = last.map(({ value }) => value);
  return new Set(certain.length > 0 ? values : [initial, ...values]);
}
