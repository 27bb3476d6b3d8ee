/** A value of a JSON column: SQLite returns it as text, PostgreSQL decoded. */
export const decoded = <Value extends object | null>(stored: string | Value): Value =>
  typeof stored === "string" ? (JSON.parse(stored) as Value) : stored;
