type Tree = Record<string, unknown>;

const isTree = (value: unknown): value is object => typeof value === "object" && value !== null;

/** The new value, built from the old value's objects wherever they are equal. */
export function share<Value>(old: Value | undefined, value: Value): Value {
  if (Object.is(old, value) || !isTree(old) || !isTree(value)) return value;
  if (Array.isArray(old) !== Array.isArray(value)) return value;
  const keys = Object.keys(value);
  let isSame = keys.length === Object.keys(old).length;
  const copy = (Array.isArray(value) ? [] : {}) as Tree;
  for (const key of keys) {
    const shared = share((old as Tree)[key], (value as Tree)[key]);
    copy[key] = shared;
    isSame &&= key in old && Object.is(shared, (old as Tree)[key]);
  }
  return isSame ? old : (copy as Value);
}

/** A copy of the record with one entry set, or removed if the value is undefined. */
export function setEntry<Value>(
  record: Readonly<Record<string, Value>>,
  key: string,
  value: Value | undefined,
): Readonly<Record<string, Value>> {
  if (record[key] === value) return record;
  const { [key]: _, ...rest } = record;
  return value === undefined ? rest : { ...record, [key]: value };
}
