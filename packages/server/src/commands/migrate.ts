import { createHash } from "node:crypto";
import { resolve } from "node:path";
import { ConfigError, readConfig } from "../config.ts";
import { openPostgresTarget } from "../store/postgres/target.ts";
import { openSqliteSource } from "../store/sqlite/source.ts";
import type { Key, Range, Row, Table, TransferSource, TransferTarget } from "../store/transfer.ts";

import { print } from "./output.ts";

/** Copies the data folder's SQLite into the PostgreSQL of DATABASE_URL, with or without a running server. */
export async function migrateCommand(): Promise<void> {
  const { database, dataDir } = readConfig();
  if (!database) throw new ConfigError("DATABASE_URL must name the PostgreSQL to migrate to.");
  const source = openSqliteSource(resolve(dataDir, "parley.db"));
  const target = await openPostgresTarget(database);
  await migrateStore({ source, target, print });
  await target.close();
  source.close();
}

/** How many rows are compared, and written, at a time. */
const PAGE = 500;
/** After so many rows it says how far it has come. */
const TOLD_ROWS = 100_000;

export interface Migration {
  source: TransferSource;
  target: TransferTarget;
  print(line: string): void;
}

/**
 * Copies everything to the target that does not stand there already, and takes away what does not
 * belong there. While a server writes to the source, that is all. Without one both sides are
 * compared to the end, and then the target is complete. May be run again after any outcome.
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

const STOP_NEXT = `What was there is copied; the server has gone on since. Next:
  1. Stop the server.
  2. Run this command again: it copies what has changed, compares everything, and says so.`;

const START_NEXT = `Everything is copied, and the same on both sides. Next:
  1. Leave PARLEY_MASTER_KEY as it is. If there was none, set it to what master.key in the data
     folder holds: the keys of agents stay sealed with it.
  2. Start the server with DATABASE_URL, and never again without: SQLite's data ends here.
  3. Keep parley.db for as long as you may want to go back to this moment.`;

/** How many rows there are, and a checksum of them. */
interface Figures {
  rows: number;
  sum: string;
}

interface Copy {
  table: Table;
  wanted: Figures;
  found: Figures;
}

const isSame = (one: Figures, other: Figures) => one.rows === other.rows && one.sum === other.sum;

/** Part of a table: what has to stand there, and what does; null while it is not known to be so. */
interface Page {
  readonly range: Range;
  readonly wanted: Figures;
  found: Figures | null;
}

/**
 * First everything goes that is not so in the source, then what is missing comes: in this order no
 * row is in the way of another.
 */
async function copyTable(migration: Migration, table: Table): Promise<Copy> {
  const { pages, removed } = await removeOthers(migration, table);
  const written = await fillIn(migration, table, pages);
  const wanted = total(pages.map((page) => page.wanted));
  migration.print(
    `${table.name}: ${count(wanted.rows)} rows, ${count(written)} written, ${count(removed)} removed`,
  );
  return { table, wanted, found: total(pages.flatMap((page) => page.found ?? [])) };
}

async function removeOthers({ source, target }: Migration, table: Table) {
  const pages: Page[] = [];
  let removed = 0;
  let after: Key | null = null;
  for (;;) {
    const rows = source.rows(table, { after, upTo: null }, PAGE);
    const last: Row | undefined = rows.at(-1);
    if (!last) break;
    const range: Range = { after, upTo: keyOf(table, last) };
    const standing = target.rows(table, range);
    const wanted = rows.map((row) => JSON.stringify(target.shaped(table, row)));
    const found = (await standing).map((row) => ({ row, text: JSON.stringify(row) }));
    const page: Page = { range, wanted: figures(wanted), found: null };
    const sum = figures(found.map(({ text }) => text));
    if (isSame(sum, page.wanted)) page.found = sum;
    const rightful = new Set(wanted);
    const others = found.filter(({ text }) => !rightful.has(text));
    const keys = others.map(({ row }) => keyOf(table, row));
    if (keys.length > 0) removed += await target.remove(table, keys);
    pages.push(page);
    after = range.upTo;
  }
  removed += await target.removeAfter(table, after);
  return { pages, removed };
}

async function fillIn(
  { source, target, print }: Migration,
  table: Table,
  pages: readonly Page[],
): Promise<number> {
  let written = 0;
  let told = TOLD_ROWS;
  for (const page of pages) {
    if (page.found) continue;
    const rows = source.rows(table, page.range);
    written += await target.insert(
      table,
      rows.map((row) => target.shaped(table, row)),
    );
    if (!source.live) {
      const standing = await target.rows(table, page.range);
      page.found = figures(standing.map((row) => JSON.stringify(row)));
    }
    if (written < told) continue;
    told += TOLD_ROWS;
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
