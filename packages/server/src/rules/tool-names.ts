/** The name of a tool as models know it. */

interface NamedTool {
  /** Null for built-in tools. */
  readonly server_id: string | null;
  readonly server: string;
  readonly tool: string;
}

/** Providers accept `A-Z a-z 0-9 _ -`, and at most 64 characters. */
const MAX_NAME_LENGTH = 64;
const SEPARATOR = "__";
const HASH_LENGTH = 8;

/**
 * The name of a function for a tool: the name of its server and its own. What providers do not accept
 * is replaced, and a hash keeps such names apart.
 */
export function functionName({ server_id, server, tool }: NamedTool): string {
  const full = server_id === null ? tool : `${server}${SEPARATOR}${tool}`;
  const safe = full.replaceAll(/[^A-Za-z0-9_-]/g, "_");
  const isAmbiguous = server_id !== null && `${server}${tool}`.includes(SEPARATOR);
  if (safe === full && safe.length <= MAX_NAME_LENGTH && !isAmbiguous) return safe;
  const hash = Bun.hash(`${server_id}\n${server}\n${tool}`).toString(36);
  return `${safe.slice(0, MAX_NAME_LENGTH - HASH_LENGTH - 1)}_${hash.slice(0, HASH_LENGTH)}`;
}
