/** Rewrites a statement of PostgreSQL's dialect, as far as the store uses it, for SQLite. */
export const compiled = (statement: string): string =>
  RULES.reduce((text, [pattern, replacement]) => text.replaceAll(pattern, replacement), statement);

type Rule = readonly [pattern: RegExp, replacement: (...found: string[]) => string];

/** SQLite has lists and objects as JSON texts. */
const RULES: readonly Rule[] = [
  [/= ANY\((\$\d+)::\w+\[\]\)/g, (_, list) => `IN (SELECT value FROM json_each(${list}))`],
  [/<> ALL\((\$\d+)::\w+\[\]\)/g, (_, list) => `NOT IN (SELECT value FROM json_each(${list}))`],
  [
    /\bunnest\((\$\d+)::\w+\[\]\) WITH ORDINALITY AS (\w+)\s*\((\w+), (\w+)\)/g,
    (_, list, alias, value, place) =>
      `(SELECT value AS ${value}, key + 1 AS ${place} FROM json_each(${list})) AS ${alias}`,
  ],
  [
    /\bunnest\((\$\d+)::\w+\[\]\) AS (\w+)\s*\((\w+)\)/g,
    (_, list, alias, value) => `(SELECT value AS ${value} FROM json_each(${list})) AS ${alias}`,
  ],
  [
    /\bjsonb_to_recordset\((\$\d+)::jsonb\)\s+AS (\w+) \(([^)]*)\)/g,
    (_, list, alias, columns = "") =>
      `(SELECT ${columns.split(",").map(fieldOf).join(", ")} FROM json_each(${list})) AS ${alias}`,
  ],
  [/::\w+(\[\])?/g, () => ""],
  [/\bFOR UPDATE( SKIP LOCKED)?\b/g, () => ""],
  [/\bgreatest\(/g, () => "max("],
  [/ COLLATE "C"/g, () => ""],
  [/\$(\d+)/g, (_, place) => `?${place}`],
];

/** A column of a record set. Fields that are JSON themselves keep that form. */
function fieldOf(column: string): string {
  const [name, type] = column.trim().split(/\s+/);
  return `value ${type === "jsonb" ? "->" : "->>"} '${name}' AS ${name}`;
}
