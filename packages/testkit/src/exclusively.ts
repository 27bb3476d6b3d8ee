import { Database } from "bun:sqlite";
import { tmpdir } from "node:os";
import { join } from "node:path";

const LOCK = join(tmpdir(), "parley-test-installation.lock");
const WAIT_MS = 15 * 60_000;

/** Does work that test processes must not do at the same time, such as installing packages. */
export function exclusively<Result>(work: () => Result): Result {
  const lock = new Database(LOCK, { create: true });
  try {
    lock.run(`PRAGMA busy_timeout = ${WAIT_MS}`);
    lock.run("BEGIN EXCLUSIVE");
    return work();
  } finally {
    lock.close();
  }
}
