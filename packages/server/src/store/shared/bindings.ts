type Value = string | number;

/** Collects the values of a statement that is put together. `bind` returns the placeholder of a value. */
export function bindings(): { values: Value[]; bind: (value: Value) => string } {
  const values: Value[] = [];
  return { values, bind: (value) => `$${values.push(value)}` };
}
