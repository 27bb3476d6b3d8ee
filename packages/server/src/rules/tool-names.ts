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

/** The name of a tool as people write it. */
export const writtenName = ({ server_id, server, tool }: NamedTool): string =>
  server_id === null ? tool : `${server}${SEPARATOR}${tool}`;

/**
 * The name of a function for a tool: the name of its server and its own. What providers do not accept
 * is replaced, and a hash keeps such names apart.
 */
export function functionName({ server_id, server, tool }: NamedTool): string {
  const written = writtenName({ server_id, server, tool });
  if (!needsHash(written)) return written;
  const hash = Bun.hash(`${server_id}\n${server}\n${tool}`).toString(36);
  return hashedName(written, hash.slice(0, HASH_LENGTH));
}

/** Whether a function is that of the tool with this name, as people write it. */
export const isFunctionOf = (name: string, written: string): boolean =>
  name === (needsHash(written) ? hashedName(written, name.slice(-HASH_LENGTH)) : written);

/** Providers would refuse such a name, or it is not clear where the name of the server ends. */
const needsHash = (written: string): boolean =>
  !/^[A-Za-z0-9_-]+$/.test(written) ||
  written.length > MAX_NAME_LENGTH ||
  /__.*__|___/.test(written);

function hashedName(written: string, hash: string): string {
  const safe = written.replaceAll(/[^A-Za-z0-9_-]/g, "_");
  return `${safe.slice(0, MAX_NAME_LENGTH - HASH_LENGTH - 1)}_${hash}`;
}
