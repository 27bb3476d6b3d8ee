import type { Database } from "bun:sqlite";
import {
  closeSync,
  constants,
  existsSync,
  openSync,
  readFileSync,
  statSync,
  writeSync,
} from "node:fs";

/** How far a history has progressed. */
interface Mark {
  id: string;
  latestMessage: number;
}

/**
 * Begins a new history if the database was restored from a backup. There are two signs of that: the
 * database is a different file than at its last start, or it is older than the mark says, a file beside
 * it that a restore of the database alone does not replace. Returns a function that saves the mark.
 */
export function followHistory(db: Database, path: string): () => void {
  const markPath = `${path}-mark`;
  const place = identityOf(path);
  // Before the database: a server that runs meanwhile stores messages first, and then saves the mark.
  const mark = readMark(markPath);
  const last = db.query<{ place: string }, []>("SELECT place FROM history").get();
  const current = db.query<Mark, []>(
    "SELECT id, (SELECT coalesce(max(id), 0) FROM messages) AS latestMessage FROM history",
  );
  if (last?.place !== place || isBehind(current.get(), mark)) {
    const renew = db.query("INSERT OR REPLACE INTO history (one, id, place) VALUES (1, ?, ?)");
    renew.run(Bun.randomUUIDv7(), place);
  }
  let saved = "";
  return () => {
    const { id, latestMessage } = current.get() as Mark;
    const text = `${id} ${`${latestMessage}`.padStart(MARK_DIGITS, "0")}`;
    if (text === saved) return;
    // Replaced in place, in one write of always the same length: file systems flush a file that was
    // truncated when it is closed, which would block the event loop.
    const file = openSync(markPath, constants.O_WRONLY | constants.O_CREAT, 0o600);
    writeSync(file, text, 0);
    closeSync(file);
    saved = text;
  };
}

/** Enough for every safe integer. */
const MARK_DIGITS = 16;

const isBehind = (current: Mark | null, mark: Mark | null): boolean =>
  mark !== null && (current?.id !== mark.id || current.latestMessage < mark.latestMessage);

/** Null if there is no mark, or a power cut left an incomplete one. */
function readMark(path: string): Mark | null {
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  const [, id, latest] = /^(\S+) (\d+)$/.exec(text) ?? [];
  return id === undefined ? null : { id, latestMessage: Number(latest) };
}

/** A copy of a file has another inode, or the same inode with another creation time. */
function identityOf(path: string): string {
  const { ino, birthtimeNs } = statSync(path, { bigint: true });
  return `${ino}-${birthtimeNs}`;
}
