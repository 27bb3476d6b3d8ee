/** Makes a value on first use. A promise that rejects is made again on the next use. */
export function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined;
  return () => {
    if (made) return made.value;
    const value = make();
    made = { value };
    if (value instanceof Promise) {
      // Whoever waits for the promise reports it.
      value.catch(() => {
        made = undefined;
      });
    }
    return value;
  };
}
