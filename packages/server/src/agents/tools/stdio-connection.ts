import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { type Connection, connect, type Timeouts } from "./connection.ts";

/** A program that is started for a connection, and talked to by its standard input and output. */
export interface StdioTarget {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;

/** Starts the program. It ends with the connection, and with this process. */
export function connectByStdio(
  { command, args, env }: StdioTarget,
  timeouts: Timeouts,
  signal: AbortSignal,
): Promise<Connection> {
  const transport = new StdioClientTransport({
    command,
    args: [...args],
    env: { ...env },
    // Not written to the log: it may contain secrets.
    stderr: "ignore",
    maxBufferSize: MAX_MESSAGE_BYTES,
  });
  return connect({ transport, timeouts }, signal);
}
