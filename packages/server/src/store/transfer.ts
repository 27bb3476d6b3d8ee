/**
 * The two ends of a move from one backend to another: `migrate.ts` copies everything from a source
 * to a target, page by page, and compares the two.
 */

/** By the names of its columns. */
export type Row = Record<string, unknown>;

/** The values of a row's key, in the order of the table's key columns. */
export type Key = readonly (number | string)[];

/** Rows by their keys: those after one, up to and including another. Null: no bound. */
export interface Range {
  readonly after: Key | null;
  readonly upTo: Key | null;
}

/** Both ends put a table's rows into the same order, by these columns. */
export interface Table {
  readonly name: string;
  readonly columns: readonly string[];
  readonly key: readonly string[];
}

/** What is copied. Nothing in it is ever changed. */
export interface TransferSource {
  /** The same for the same installation at any time, and for no other. */
  readonly id: string;
  /** Whether a server may write to it meanwhile. If not, none can until this process ends. */
  readonly live: boolean;
  /** Everything that has to be copied. */
  readonly tables: readonly Table[];
  /** In the order of their keys; at most so many. */
  rows(table: Table, range: Range, most?: number): Row[];
  close(): void;
}

/** Where it goes. Every change is kept whole or not at all, and a later run goes on from it. */
export interface TransferTarget {
  /**
   * Makes this run the one that may write here, and the one before it stop. Throws when there is
   * anything here but an unfinished copy of the same source, or when a server uses it.
   */
  claim(source: string): Promise<void>;
  /** Throws when the table is not kept here with exactly the same columns. */
  check(table: Table): void;
  /** A row of the source as it has to stand here, with what is derived from it. */
  shaped(table: Table, row: Row): Row;
  /** Rows as they stand here, in the order of their keys. */
  rows(table: Table, range: Range): Promise<Row[]>;
  /** How many were there. */
  remove(table: Table, keys: readonly Key[]): Promise<number>;
  removeAfter(table: Table, key: Key | null): Promise<number>;
  /** How many are new. Rows that are in the way of one are left for a later run to remove. */
  insert(table: Table, shaped: readonly Row[]): Promise<number>;
  /** Makes it ready to be served from. No run may write here any more. */
  finish(tables: readonly Table[]): Promise<void>;
  close(): Promise<void>;
}
