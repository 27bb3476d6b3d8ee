import { Database, SQLiteError } from "bun:sqlite";
import { existsSync, rmSync, statSync } from "node:fs";
import type { File } from "@parley/protocol";
import { searchedText } from "../../rules/files.ts";
import { searchParts, spaced } from "../../rules/search.ts";
import { keepPrivate } from "../private-file.ts";
import type { SearchHit, SearchQuery } from "../search.ts";
import { decoded } from "../sql.ts";
import { BUSY_TIMEOUT_MS, truncateLog } from "./connection.ts";

const VERSION = 4;
/** Searches find what is indexed only after a task, and one long message can take 12 ms. */
const TASK_MS = 100;

export interface IndexProgress {
  /** How many messages and changes are not indexed yet, or a little more. */
  left: number;
  /** The last row of `search_changes` that the index has. */
  lastChange: number;
}

/**
 * Opens the full-text index, a file beside the database. It is built from the database, and built
 * again when it is missing, corrupt, or does not match the database. Only one thread writes it.
 */
export function openIndexer(path: string, messages: Database) {
  const file = indexFile(path);
  const build = () => {
    removeIndex(file);
    return indexerOf(prepareIndex(file), messages);
  };
  let indexer = openExisting(file, messages) ?? build();
  const rebuild = () => {
    const corrupt = indexer;
    indexer = build();
    corrupt.close();
  };

  return {
    /** Indexes new and changed messages, oldest first, at most `most` of each, for some `TASK_MS`. */
    catchUp(most: number): IndexProgress {
      // A searcher has removed the index because it is corrupt.
      if (!existsSync(file)) rebuild();
      try {
        return indexer.catchUp(most);
      } catch (error) {
        if (!isCorrupt(error)) throw error;
        rebuild();
        return indexer.catchUp(most);
      }
    },
    /** Empties the index's write-ahead log, which may contain deleted text. False if somebody reads it. */
    truncateLog: () => indexer.truncateLog(),
    close: () => indexer.close(),
  };
}

function indexerOf(index: Database, messages: Database) {
  const place = index.query<{ message_id: number; change_id: number }, []>(
    "SELECT message_id, change_id FROM progress",
  );
  const move = index.query(
    "UPDATE progress SET message_id = ?1, change_id = ?2, message_uuid = coalesce(?3, message_uuid)",
  );
  const add = index.query("INSERT INTO entries (rowid, chat, content) VALUES (?, ?, ?)");
  const drop = index.query("DELETE FROM entries WHERE rowid = ?");
  const created = messages.query<Row & { uuid: string }, [number, number]>(
    `SELECT id, uuid, conversation_id, content, files, deleted_at FROM messages WHERE id > ? ORDER BY id LIMIT ?`,
  );
  const changed = messages.query<Row & { change_id: number }, [number, number]>(
    `SELECT s.id AS change_id, m.id, m.conversation_id, m.content, m.files, m.deleted_at
     FROM search_changes s JOIN messages m ON m.id = s.message_id WHERE s.id > ? ORDER BY s.id LIMIT ?`,
  );

  const enter = ({ id, conversation_id, content, files }: Row) =>
    add.run(id, `c${conversation_id}`, spaced(searchedText(content, decoded(files) ?? [])));
  const last = messages.query<{ message: number; change: number }, []>(
    `SELECT coalesce((SELECT max(id) FROM messages), 0) AS message,
            coalesce((SELECT max(id) FROM search_changes), 0) AS change`,
  );
  const indexSome = index.transaction((most: number): IndexProgress => {
    const endsAt = performance.now() + TASK_MS;
    const from = place.get() ?? { message_id: 0, change_id: 0 };
    const fresh = created.all(from.message_id, most);
    const added = inTime(fresh, endsAt, (row) => {
      if (row.deleted_at === null) enter(row);
    });
    const upTo = added.at(-1)?.id ?? from.message_id;
    const edits = changed.all(from.change_id, most);
    const replaced = inTime(edits, endsAt, (row) => {
      // A message that is not indexed yet will be indexed with its current text.
      if (row.id > upTo) return;
      drop.run(row.id);
      if (row.deleted_at === null) enter(row);
    });
    const lastChange = replaced.at(-1)?.change_id ?? from.change_id;
    move.run(upTo, lastChange, added.at(-1)?.uuid ?? null);
    const end = last.get() ?? { message: 0, change: 0 };
    const isAll = (rows: Row[], done: Row[]) => rows.length < most && done.length === rows.length;
    const left =
      (isAll(fresh, added) ? 0 : end.message - upTo) +
      (isAll(edits, replaced) ? 0 : end.change - lastChange);
    return { left, lastChange };
  });

  return {
    catchUp: indexSome.immediate,
    truncateLog: () => truncateLog(index),
    close: () => index.close(),
  };
}

/** Indexes rows until the time is over, but at least one. Returns those that are indexed. */
function inTime<Each>(rows: Each[], endsAt: number, index: (row: Each) => void): Each[] {
  let done = 0;
  for (const row of rows) {
    index(row);
    done++;
    if (performance.now() > endsAt) break;
  }
  return rows.slice(0, done);
}

/**
 * The index must exist: the indexer has opened it before. A searcher that finds it corrupt removes it.
 * The indexer then builds it again, and all searchers open the new file.
 */
export function openSearcher(path: string) {
  const file = indexFile(path);
  let opened: { inode: number | undefined; searcher: ReturnType<typeof searcherOf> } | undefined;
  return {
    find(query: SearchQuery): SearchHit[] {
      const inode = inodeOf(file);
      try {
        if (!opened || opened.inode !== inode) {
          opened?.searcher.close();
          opened = { inode, searcher: searcherOf(path) };
        }
        return opened.searcher.find(query);
      } catch (error) {
        if (isCorrupt(error) && inodeOf(file) === inode) rmSync(file, { force: true });
        throw error;
      }
    },
    close: () => opened?.searcher.close(),
  };
}

const inodeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.ino;

function searcherOf(path: string) {
  const db = new Database(indexFile(path), { readonly: true, strict: true });
  db.run("PRAGMA busy_timeout = 1000");
  db.query("ATTACH ? AS parley").run(path);
  const joined = db.query<{ conversation_id: number }, [number]>(
    "SELECT conversation_id FROM parley.members WHERE account_id = ?",
  );
  // The index is searched in the viewer's conversations only, newest entry first. The joins remove
  // what the index does not know: conversations that the viewer left, and messages that are
  // deleted, hidden or cleared.
  const match = db.query<SearchHit, [string, number, number, number]>(
    `SELECT m.uuid, m.id AS position FROM entries
     CROSS JOIN parley.messages m ON m.id = entries.rowid
     CROSS JOIN parley.members b ON b.conversation_id = m.conversation_id AND b.account_id = ?2
     WHERE entries MATCH ?1 AND entries.rowid < ?3 AND m.deleted_at IS NULL
       AND NOT EXISTS (SELECT 1 FROM parley.hidden h WHERE h.account_id = ?2
         AND h.conversation_id = m.conversation_id AND h.seq = m.seq) AND m.seq > b.cleared_seq
     ORDER BY entries.rowid DESC LIMIT ?4`,
  );
  return {
    find({ words, viewerId, conversationId, before, limit }: SearchQuery): SearchHit[] {
      const scope =
        conversationId === undefined
          ? joined.all(viewerId).map((row) => row.conversation_id)
          : [conversationId];
      if (words.length === 0 || scope.length === 0) return [];
      const expression = matchExpression(words, scope);
      return match.all(expression, viewerId, before ?? Number.MAX_SAFE_INTEGER, limit);
    },
    close: () => db.close(),
  };
}

const indexFile = (path: string) => `${path.replace(/\.db$/, "")}-search.db`;

interface Row {
  id: number;
  conversation_id: number;
  content: string;
  files: string | File[] | null;
  deleted_at: number | null;
}

function matchExpression(words: readonly string[], scope: readonly number[]): string {
  const phrases = words.map((word, place) => {
    const { parts, open } = searchParts(word);
    const phrase = parts.join(" ").replaceAll('"', '""');
    return `"${phrase}"${open || place === words.length - 1 ? "*" : ""}`;
  });
  const chats = scope.map((id) => `c${id}`).join(" OR ");
  return `(chat : (${chats})) AND content : (${phrases.join(" AND ")})`;
}

/** Null if the index is missing, unreadable, of another version or of another database. */
function openExisting(file: string, messages: Database): ReturnType<typeof indexerOf> | null {
  try {
    const index = prepareIndex(file);
    if (matches(index, messages)) return indexerOf(index, messages);
    index.close();
    return null;
  } catch {
    // The caller builds a new one.
    return null;
  }
}

function removeIndex(file: string): void {
  for (const suffix of ["", "-wal", "-shm"]) rmSync(file + suffix, { force: true });
}

const isCorrupt = (error: unknown) =>
  error instanceof SQLiteError && /^SQLITE_(CORRUPT|NOTADB)/.test(error.code ?? "");

/** Whether the index matches the database. It may not after a crash, or a restore of either. */
function matches(index: Database, messages: Database): boolean {
  const place = index
    .query<{ message_id: number; message_uuid: string | null; change_id: number }, []>(
      "SELECT message_id, message_uuid, change_id FROM progress",
    )
    .get();
  if (!place) return false;
  const last = messages
    .query<{ uuid: string }, [number]>("SELECT uuid FROM messages WHERE id = ?")
    .get(place.message_id);
  const changes = messages
    .query<{ first: number | null; last: number | null }, []>(
      "SELECT min(id) AS first, max(id) AS last FROM search_changes",
    )
    .get();
  // The index would miss changes that were pruned before it had them.
  const isComplete = place.message_id === 0 || place.change_id >= (changes?.first ?? 1) - 1;
  return (
    (last?.uuid ?? null) === place.message_uuid &&
    place.change_id <= (changes?.last ?? 0) &&
    isComplete
  );
}

/** Synced at checkpoints only: what a power cut loses of the last writes is indexed again. */
function prepareIndex(file: string): Database {
  keepPrivate(file);
  const index = new Database(file, { create: true, strict: true });
  index.run(`PRAGMA busy_timeout = ${BUSY_TIMEOUT_MS}`);
  index.run("PRAGMA journal_mode = WAL");
  index.run("PRAGMA synchronous = NORMAL");
  index.run("PRAGMA secure_delete = ON");
  const found = index.query<{ user_version: number }, []>("PRAGMA user_version").get();
  if (found?.user_version === VERSION) return index;
  if (found?.user_version !== 0) {
    index.close();
    throw new Error("the search index has another version");
  }
  index.transaction(() => {
    index.run(
      `CREATE VIRTUAL TABLE entries USING fts5 (chat, content, columnsize = 0,
         tokenize = "unicode61 remove_diacritics 2")`,
    );
    // Words of deleted messages are removed from the index at once instead of by a later merge. For
    // that the index stores the text.
    index.run("INSERT INTO entries (entries, rank) VALUES ('secure-delete', 1)");
    index.run(
      `CREATE TABLE progress (message_id INTEGER NOT NULL, change_id INTEGER NOT NULL,
         message_uuid TEXT)`,
    );
    index.run("INSERT INTO progress VALUES (0, 0, NULL)");
    index.run(`PRAGMA user_version = ${VERSION}`);
  })();
  return index;
}
