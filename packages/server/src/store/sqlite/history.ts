import type { Database } from "bun:sqlite";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import type { HistoryReads, HistoryWrites } from "../history.ts";
import type { Connection } from "./connection.ts";

export function historyReads(db: Connection): HistoryReads {
  const current = db.query<{ id: string }>("SELECT id FROM history");
  return { historyId: () => current.get()?.id ?? "" };
}

export function historyWrites(db: Connection): HistoryWrites {
  const renew = db.change("UPDATE history SET id = ?");
  return { renewHistory: () => void renew.run(Bun.randomUUIDv7()) };
}

/** How far a history has come. */
interface Mark {
  id: string;
  latestMessage: number;
}

/**
 * Begins another history if the database was restored from a backup. A restore shows in two ways: the
 * database is another file than the one that it was last opened as, or it is behind the mark, a file
 * beside it that a restore of the database alone does not bring along. Returns how to save the mark.
 */
export function followHistory(db: Database, path: string): () => void {
  const markPath = `${path}-mark`;
  const place = identityOf(path);
  const last = db.query<{ place: string }, []>("SELECT place FROM history").get();
  const current = db.query<Mark, []>(
    "SELECT id, (SELECT coalesce(max(id), 0) FROM messages) AS latestMessage FROM history",
  );
  if (last?.place !== place || isBehind(current.get(), readMark(markPath))) {
    const renew = db.query("INSERT OR REPLACE INTO history (one, id, place) VALUES (1, ?, ?)");
    renew.run(Bun.randomUUIDv7(), place);
  }
  let saved = "";
  return () => {
    const { id, latestMessage } = current.get() as Mark;
    const mark = `${id} ${latestMessage}`;
    if (mark === saved) return;
    writeFileSync(markPath, mark, { mode: 0o600 });
    saved = mark;
  };
}

const isBehind = (current: Mark | null, mark: Mark | null): boolean =>
  mark !== null && (current?.id !== mark.id || current.latestMessage < mark.latestMessage);

/** Null if there is none, or a power cut left an unfinished one. */
function readMark(path: string): Mark | null {
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  const [, id, latest] = /^(\S+) (\d+)$/.exec(text) ?? [];
  return id === undefined ? null : { id, latestMessage: Number(latest) };
}

/** A copy has another inode, or the same one with another time of birth. */
function identityOf(path: string): string {
  const { ino, birthtimeNs } = statSync(path, { bigint: true });
  return `${ino}-${birthtimeNs}`;
}
