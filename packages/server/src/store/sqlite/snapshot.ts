import { Database } from "bun:sqlite";
import { statSync } from "node:fs";

/** How often the progress of a snapshot is reported. */
const PROGRESS_MS = 200;

export interface SnapshotOptions {
  /** The database, which a server may be writing to. */
  readonly from: string;
  /** An empty file. */
  readonly to: string;
  progress(copiedBytes: number, totalBytes: number): void;
}

/**
 * Copies a consistent snapshot of the database, with everything that was acknowledged before. It holds
 * no lock that writers wait for. SQLite copies synchronously, so a thread does it.
 */
export async function snapshotDatabase({ from, to, progress }: SnapshotOptions): Promise<void> {
  const totalBytes = sizeOf(from) + sizeOf(`${from}-wal`);
  const worker = new Worker(new URL("./snapshot-worker.ts", import.meta.url).href, {
    argv: [from, to],
  });
  const timer = setInterval(() => progress(sizeOf(to), totalBytes), PROGRESS_MS);
  try {
    await new Promise<void>((resolve, reject) => {
      worker.addEventListener("message", ({ data }: MessageEvent<SnapshotReply>) =>
        data.error === null ? resolve() : reject(new Error(data.error)),
      );
      worker.addEventListener("error", ({ message }) => reject(new Error(message)));
    });
  } finally {
    clearInterval(timer);
    worker.terminate();
  }
}

/** What the thread answers. */
export interface SnapshotReply {
  error: string | null;
}

const sizeOf = (path: string) => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

export interface DatabaseSummary {
  readonly schema: number;
  readonly accounts: number;
  readonly messages: number;
}

/** Checks the structure of a database that nothing else uses, and describes its content. */
export function inspectDatabase(path: string): DatabaseSummary {
  using db = new Database(path, { readonly: true, strict: true });
  const check = db.query<{ quick_check: string }, []>("PRAGMA quick_check(1)").get();
  if (check?.quick_check !== "ok") {
    throw new Error(`the database is damaged: ${check?.quick_check ?? "it cannot be read"}`);
  }
  const count = (table: string) =>
    db.query<{ rows: number }, []>(`SELECT count(*) AS rows FROM ${table}`).get()?.rows ?? 0;
  return {
    schema: db.query<{ user_version: number }, []>("PRAGMA user_version").get()?.user_version ?? 0,
    accounts: count("accounts"),
    messages: count("messages"),
  };
}

/** The blobs of files in a database that nothing else uses. None in one of an older schema. */
export function blobsIn(path: string): string[] {
  using db = new Database(path, { readonly: true, strict: true });
  const files = db.query("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'files'");
  if (!files.get()) return [];
  const blobs = db.query<{ blob: string }, []>("SELECT blob FROM files WHERE blob IS NOT NULL");
  return blobs.all().map(({ blob }) => blob);
}

/** Makes the next start of a server on this database begin a new history. */
export function forgetPlace(path: string): void {
  using db = new Database(path, { readwrite: true, strict: true });
  const history = db.query("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'history'");
  if (history.get()) db.run("UPDATE history SET place = ''");
}
