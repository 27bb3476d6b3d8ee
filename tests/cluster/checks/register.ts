import { mayHaveHappened, type Operation } from "../history.ts";

/** Something that sets a value. */
export interface Setting<Value> {
  operation: Operation;
  value: Value;
}

/**
 * The values that something may have in the end: those of every change that, for all that clients
 * can tell, may have been the last. One that was acknowledged before another began was not, if that
 * other was acknowledged too.
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
