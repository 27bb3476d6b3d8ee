import { Database } from "bun:sqlite";
import { fdatasyncSync, openSync } from "node:fs";

/** Each method calls `done` once its change is stored; all but `append` also sync it. */
export interface AnswerFloor {
  begin(id: string, done: () => void): void;
  append(id: string, offset: number, text: string, done: () => void): void;
  end(id: string, content: string, done: () => void): void;
}

interface Job {
  run(): void;
  done(): void;
  isSynced: boolean;
}

/**
 * Stores streamed answers in SQLite with the least that lets them survive a crash: a row for the answer,
 * its chunks before they are shown, and its text at the end. What arrives in one iteration of the event
 * loop shares a transaction.
 */
export function answerFloor(path: string): AnswerFloor {
  const db = new Database(path, { create: true });
  db.run("PRAGMA journal_mode = WAL");
  // Commits are not synced by SQLite itself.
  db.run("PRAGMA synchronous = NORMAL");
  db.run("CREATE TABLE answers (id TEXT PRIMARY KEY, content TEXT) WITHOUT ROWID");
  db.run(
    `CREATE TABLE chunks (answer TEXT, byte_offset INTEGER, text TEXT,
       PRIMARY KEY (answer, byte_offset)) WITHOUT ROWID`,
  );
  const log = openSync(`${path}-wal`, "r");
  const insert = db.query("INSERT INTO answers (id) VALUES (?)");
  const append = db.query("INSERT INTO chunks VALUES (?, ?, ?)");
  const finish = db.query("UPDATE answers SET content = ?2 WHERE id = ?1");
  const drop = db.query("DELETE FROM chunks WHERE answer = ?");
  let waiting: Job[] = [];

  function runWaiting(): void {
    const batch = waiting;
    waiting = [];
    db.run("BEGIN");
    for (const { run } of batch) run();
    db.run("COMMIT");
    if (batch.some(({ isSynced }) => isSynced)) fdatasyncSync(log);
    for (const { done } of batch) done();
  }

  function add(job: Job): void {
    waiting.push(job);
    if (waiting.length === 1) setImmediate(runWaiting);
  }

  return {
    begin: (id, done) => add({ run: () => void insert.run(id), done, isSynced: true }),
    append: (id, offset, text, done) =>
      add({ run: () => void append.run(id, offset, text), done, isSynced: false }),
    end: (id, content, done) => {
      const run = () => {
        finish.run(id, content);
        drop.run(id);
      };
      add({ run, done, isSynced: true });
    },
  };
}
