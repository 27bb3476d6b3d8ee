import { Unavailable } from "../store.ts";

/** Space is freed by people, so that an early retry only costs. */
const RETRY_S = 5;

/** The error of a disk that takes no more, or of files that cannot be written; others stay what they are. */
export function explained(error: unknown): unknown {
  const { code = "" } = error as { code?: string };
  const options = { retryAfter: RETRY_S, cause: error };
  if (code === "SQLITE_FULL") return new Unavailable("the disk of the server is full", options);
  if (!/^SQLITE_(READONLY|CANTOPEN|IOERR)/.test(code)) return error;
  return new Unavailable("the database cannot be written", options);
}
