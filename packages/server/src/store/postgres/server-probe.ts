import {
  inTime,
  NoAnswer,
  openPool,
  type PostgresOptions,
  type ServerProbe,
  stateOf,
} from "./connection.ts";

/** How long a server that works may take to answer on a new connection. */
export const PROBE_MS = 1000;

export function serverProbe(options: PostgresOptions): ServerProbe {
  let asking: Promise<boolean> | null = null;
  let isSilent = false;

  async function ask(): Promise<boolean> {
    const pool = openPool(options, 1);
    try {
      await inTime(pool.unsafe("SELECT 1"), PROBE_MS);
      isSilent = false;
      return true;
    } catch (error) {
      isSilent = error instanceof NoAnswer;
      // A refusal is an answer, such as that of a server with too many connections.
      return stateOf(error) !== undefined;
    } finally {
      asking = null;
      // A connection that cannot be closed is lost already.
      void pool.close({ timeout: 0 }).catch(() => {});
    }
  }

  return {
    answers() {
      asking ??= ask();
      return asking;
    },
    isSilent: () => isSilent,
  };
}
