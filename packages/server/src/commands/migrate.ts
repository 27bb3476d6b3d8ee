import { createHash } from "node:crypto";
import { resolve } from "node:path";
import { ConfigError, readConfig } from "../config/config.ts";
import { openPostgresTarget } from "../store/postgres/target.ts";
import { openSqliteSource } from "../store/sqlite/source.ts";
import type { Key, Range, Row, Table, TransferSource, TransferTarget } from "../store/transfer.ts";
import { command } from "./command.ts";
import { countMissing, migrateFiles, namedObjects } from "./migrate-files.ts";

const only = (store: string, summary: string) =>
  ({ type: "string", value: "store", choices: [store], required: true, summary }) as const;

export const migrate = command({
  name: "migrate",
  summary: "Copy the data from SQLite to PostgreSQL.",
  details: `Copies the database in PARLEY_DATA to the one of DATABASE_URL, and the files that people have
sent to PARLEY_FILES. Run it while the server runs, stop
the server, and run it again: docs/migrating.md has the steps.`,
  options: { from: only("sqlite", "The source."), to: only("postgres", "The target.") },
  examples: [
    { line: "migrate --from sqlite --to postgres", summary: "Can be stopped and run again." },
  ],
  async run({ print }) {
    const { database, dataDir, files } = readConfig();
    if (!database) throw new ConfigError("DATABASE_URL must name the PostgreSQL to migrate to.");
    await using open = new AsyncDisposableStack();
    const source = openSqliteSource(resolve(dataDir, "parley.db"));
    open.defer(() => source.close());
    const target = await openPostgresTarget(database);
    open.defer(() => target.close());
    // Read first: what a running server stores meanwhile is copied by a later run.
    const names = namedObjects(source);
    await migrateFiles({ dataDir, files, print });
    const missing = await countMissing(names, files);
    if (missing > 0 && !source.live) throw new ConfigError(missingFiles(missing));
    await migrateStore({ source, target, print });
    if (missing > 0) print(missingFiles(missing));
    return { json: { complete: !source.live }, text: null };
  },
});

const missingFiles = (files: number) =>
  `The storage of PARLEY_FILES lacks the bytes of ${count(files)} files: set PARLEY_FILES to where the server has kept them until now, or copy them from there, and run this command again.`;

const BATCH_ROWS = 500;
/** Progress is printed each time this many rows were written. */
const PROGRESS_ROWS = 100_000;

export interface Migration {
  source: TransferSource;
  target: TransferTarget;
  print(line: string): void;
}

/**
 * Makes the target equal to the source: writes the rows that are missing or differ, and removes the
 * others. If a server is writing to the source, this is a first pass. Without one, all rows are
 * compared and the target is then marked as complete. May be run again after any outcome.
 */
export async function migrateStore(migration: Migration): Promise<void> {
  const { source, target, print } = migration;
  for (const table of source.tables) target.check(table);
  await target.claim(source.id);
  const copies: Copy[] = [];
  for (const table of source.tables) copies.push(await copyTable(migration, table));
  if (source.live) {
    print(STOP_NEXT);
    return;
  }
  for (const line of report(copies)) print(line);
  const wrong = copies.filter(({ wanted, found }) => !isSame(wanted, found));
  if (wrong.length > 0) {
    const names = wrong.map(({ table }) => table.name).join(", ");
    throw new Error(`the copy is not the same as its source: ${names}`);
  }
  await target.finish(source.tables);
  print(START_NEXT);
}

const STOP_NEXT = `The data is copied, but the server is still running and changing it. Next:
  1. Stop the server.
  2. Run this command again. It copies what has changed and compares everything.`;

const START_NEXT = `All data is copied and equal on both sides. Next:
  1. Keep PARLEY_MASTER_KEY as it is. If it was not set, set it to the content of master.key in the
     data folder: the keys of agents are sealed with it.
  2. Start the server with DATABASE_URL, and never again without it: SQLite gets no new data.
  3. Keep parley.db for as long as you may want to go back to the data of this moment.`;

interface Figures {
  rows: number;
  sum: string;
}

type Copy = Awaited<ReturnType<typeof copyTable>>;

const isSame = (one: Figures, other: Figures) => one.rows === other.rows && one.sum === other.sum;

/** A part of a table: the figures of the source, and those of the target once they are known. */
interface Batch {
  readonly range: Range;
  readonly wanted: Figures;
  found: Figures | null;
}

/** Removes first and inserts then, so that no row violates a unique index because of another. */
async function copyTable(migration: Migration, table: Table) {
  const { batches, removed } = await removeDifferences(migration, table);
  const written = await insertMissing(migration, table, batches);
  const wanted = total(batches.map((batch) => batch.wanted));
  migration.print(
    `${table.name}: ${count(wanted.rows)} rows, ${count(written)} written, ${count(removed)} removed`,
  );
  return { table, wanted, found: total(batches.flatMap((batch) => batch.found ?? [])) };
}

/** Removes the rows of the target that the source does not have in the same form. */
async function removeDifferences({ source, target }: Migration, table: Table) {
  const batches: Batch[] = [];
  let removed = 0;
  let after: Key | null = null;
  for (;;) {
    const rows = source.rows(table, { after, upTo: null }, BATCH_ROWS);
    const last: Row | undefined = rows.at(-1);
    if (!last) break;
    const range: Range = { after, upTo: keyOf(table, last) };
    const targetRows = target.rows(table, range);
    const wanted = rows.map((row) => JSON.stringify(target.shaped(table, row)));
    const found = (await targetRows).map((row) => ({ row, text: JSON.stringify(row) }));
    const batch: Batch = { range, wanted: figures(wanted), found: null };
    const foundFigures = figures(found.map(({ text }) => text));
    if (isSame(foundFigures, batch.wanted)) batch.found = foundFigures;
    const wantedTexts = new Set(wanted);
    const different = found.filter(({ text }) => !wantedTexts.has(text));
    const keys = different.map(({ row }) => keyOf(table, row));
    if (keys.length > 0) removed += await target.remove(table, keys);
    batches.push(batch);
    after = range.upTo;
  }
  removed += await target.removeAfter(table, after);
  return { batches, removed };
}

/** Writes the batches that differ. Without a running server it reads them back, to compare them. */
async function insertMissing(
  { source, target, print }: Migration,
  table: Table,
  batches: readonly Batch[],
): Promise<number> {
  let written = 0;
  let nextProgress = PROGRESS_ROWS;
  for (const batch of batches) {
    if (batch.found) continue;
    const rows = source.rows(table, batch.range);
    written += await target.insert(
      table,
      rows.map((row) => target.shaped(table, row)),
    );
    if (!source.live) {
      const targetRows = await target.rows(table, batch.range);
      batch.found = figures(targetRows.map((row) => JSON.stringify(row)));
    }
    if (written < nextProgress) continue;
    nextProgress += PROGRESS_ROWS;
    print(`${table.name}: ${count(written)} rows written so far`);
  }
  return written;
}

const keyOf = ({ key }: Table, row: Row): Key =>
  key.map((column) => row[column] as string | number);

const digest = (texts: readonly string[]) => {
  const hash = createHash("sha256");
  for (const text of texts) hash.update(text).update("\n");
  return hash.digest("hex");
};

const figures = (texts: readonly string[]): Figures => ({ rows: texts.length, sum: digest(texts) });

const total = (parts: readonly Figures[]): Figures => ({
  rows: parts.reduce((sum, { rows }) => sum + rows, 0),
  sum: digest(parts.map(({ sum }) => sum)),
});

const count = (rows: number) => rows.toLocaleString("en-GB");

function report(copies: readonly Copy[]): string[] {
  const lines = copies.map(({ table, wanted, found }) => [
    table.name,
    count(wanted.rows),
    count(found.rows),
    short(wanted.sum),
    short(found.sum),
  ]);
  const head = ["", "rows", "copied", "checksum", "of the copy"];
  return [head, ...lines].map(
    ([name = "", ...cells]) => name.padEnd(16) + cells.map((cell) => cell.padStart(18)).join(""),
  );
}

const short = (sum: string) => sum.slice(0, 16);
