/**
 * Interfaces for moving an installation from one backend to another: `migrate.ts` copies all rows from
 * a source to a target, page by page, and compares the two.
 */

/** A row by its column names. */
export type Row = Record<string, unknown>;

/** The values of a row's key, in the order of the table's key columns. */
export type Key = readonly (number | string)[];

/** A range of keys. Null means unbounded. */
export interface Range {
  /** Exclusive. */
  readonly after: Key | null;
  /** Inclusive. */
  readonly upTo: Key | null;
}

export interface Table {
  readonly name: string;
  readonly columns: readonly string[];
  /** Source and target order rows by these columns. */
  readonly key: readonly string[];
}

/** What is copied. It is only read. */
export interface TransferSource {
  /** Identifies the installation. */
  readonly id: string;
  /** Whether a server may be writing to it. If not, none can start until this process ends. */
  readonly live: boolean;
  /** The tables to copy. */
  readonly tables: readonly Table[];
  /** At most `most` rows of a range, ordered by key. */
  rows(table: Table, range: Range, most?: number): Row[];
  close(): void;
}

/** What is copied into. Every change is atomic, and a later run continues from it. */
export interface TransferTarget {
  /**
   * Gives this run the right to write, and takes it from an earlier run. Throws when the target has
   * anything but an unfinished copy of the same source, or a server uses it.
   */
  claim(source: string): Promise<void>;
  /** Throws when the target does not have the table with exactly the same columns. */
  check(table: Table): void;
  /** Converts a row of the source to the row that the target stores, with derived columns. */
  shaped(table: Table, row: Row): Row;
  /** Rows as the target has them, ordered by key. */
  rows(table: Table, range: Range): Promise<Row[]>;
  /** Returns how many rows it removed. */
  remove(table: Table, keys: readonly Key[]): Promise<number>;
  removeAfter(table: Table, key: Key | null): Promise<number>;
  /** Returns how many rows it inserted. A row that conflicts with another is left to a later run. */
  insert(table: Table, shaped: readonly Row[]): Promise<number>;
  /** Makes the target ready for a server. No run may write to it any more. */
  finish(tables: readonly Table[]): Promise<void>;
  close(): Promise<void>;
}
