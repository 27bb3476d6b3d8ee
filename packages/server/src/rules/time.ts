export const iso = (ms: number) => new Date(ms).toISOString();
export const isoOrNull = (ms: number | null) => (ms === null ? null : iso(ms));

/** The UTC day of a time, as `YYYY-MM-DD`. */
export const dayOf = (ms: number) => iso(ms).slice(0, 10);
