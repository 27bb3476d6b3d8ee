/** What both APIs reject at the top level. The tool itself checks its arguments. */
const REJECTED = new Set(["$schema", "oneOf", "anyOf", "allOf", "not", "enum"]);

/** A schema of tool arguments in the form that both APIs accept: an object with properties. */
export const objectSchema = (schema: Readonly<Record<string, unknown>>): object => ({
  properties: {},
  ...Object.fromEntries(Object.entries(schema).filter(([key]) => !REJECTED.has(key))),
  type: "object",
});
