/** JSON of records that are sent more than once: in an event, and in the reply to its author. */
const encodings = new WeakMap<object, string>();

/** Encodes a record that does not change any more, and remembers the result while the record lives. */
export function encodeShared(record: object): string {
  const known = encodings.get(record);
  if (known !== undefined) return known;
  const text = JSON.stringify(record);
  encodings.set(record, text);
  return text;
}

/** Encodes a value, from memory if `encodeShared` has encoded it. */
export const encode = (value: unknown): string =>
  (typeof value === "object" && value !== null ? encodings.get(value) : undefined) ??
  JSON.stringify(value);
