import type { Account } from "@parley/protocol";
import { type AccountRow, publicAccount } from "../../rules/accounts.ts";
import type { AccountRecord, Metadata, ProductAccount, Renamed } from "../accounts.ts";
import { decoded } from "./json.ts";

const columnsOf = (table: string, columns: readonly string[]) =>
  columns.map((column) => `${table}.${column}`).join(", ");

const COLUMNS = [
  "id",
  "username",
  "kind",
  "display_name",
  "version",
  "owner_id",
  "provider",
  "suspended_at",
  "erased_at",
] as const;

/** Columns of an `AccountRecord`, from a table with the alias `a`. */
export const ACCOUNT = columnsOf("a", COLUMNS);

const PUBLIC_COLUMNS = ["username", "kind", "display_name", "version", "erased_at"] as const;

type PublicRecord = Pick<AccountRecord, (typeof PUBLIC_COLUMNS)[number]>;

/** Columns of an `AccountRow`, from a table with the alias `a`. */
export const PUBLIC_ACCOUNT = columnsOf("a", PUBLIC_COLUMNS);

/** Columns of a second account in a row. They begin with the alias of its table. */
export type JoinedAccount<Alias extends string> = {
  [Column in keyof PublicRecord as `${Alias}_${Column}`]: PublicRecord[Column];
};

/** Selects the columns of a `JoinedAccount`, and reads it from a row. */
export function joinedAccount<Alias extends string>(alias: Alias) {
  const names = PUBLIC_COLUMNS.map((column) => [column, `${alias}_${column}`] as const);
  return {
    columns: names.map(([column, name]) => `${alias}.${column} AS ${name}`).join(", "),
    of: (row: JoinedAccount<Alias>) => {
      const account: Record<string, unknown> = {};
      for (const [column, name] of names) account[column] = row[name];
      return account as PublicRecord;
    },
  };
}

/** Picks the account from a row that has other columns too. */
export const accountOf = (row: AccountRecord): AccountRecord => ({
  id: row.id,
  username: row.username,
  kind: row.kind,
  display_name: row.display_name,
  version: row.version,
  owner_id: row.owner_id,
  provider: row.provider,
  suspended_at: row.suspended_at,
  erased_at: row.erased_at,
});

export const byId = (rows: readonly (AccountRow & { id: number })[]): Map<number, Account> =>
  new Map(rows.map((row) => [row.id, publicAccount(row)]));

export type ProductRow = AccountRecord & {
  external_id: string;
  metadata: string | Metadata | null;
};

export const toProductAccount = (row: ProductRow): ProductAccount => ({
  ...row,
  metadata: decoded(row.metadata),
});

/** Inserts an account, and returns its `AccountRecord` unless its username or external id is taken. */
export const INSERT_ACCOUNT = `INSERT INTO accounts (username, kind, display_name, password_hash,
    owner_id, provider, external_id, metadata, created_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING
  RETURNING ${columnsOf("accounts", COLUMNS)}`;

export type CredentialsRow = AccountRecord & { password_hash: string | null };

export const toCredentials = (row: CredentialsRow) => ({
  account: accountOf(row),
  password_hash: row.password_hash,
});

/** Whether `listAccounts` returns an account to the viewer, parameter 1, after the username, parameter 2. */
export const IS_LISTED = "(a.kind = 'human' OR a.owner_id = $1) AND a.username > $2";

export const LIST_ACCOUNTS = `SELECT ${ACCOUNT} FROM accounts a
  WHERE ${IS_LISTED} AND a.erased_at IS NULL ORDER BY a.username LIMIT $3`;

/** An account that matches by several names is listed once, under the first of them. */
export const findAccounts = (join: "JOIN" | "CROSS JOIN") => `SELECT ${ACCOUNT}, n.name
  FROM account_names n ${join} accounts a ON a.id = n.account_id
  WHERE (n.name, n.username) > ($1, $2) AND n.name < $3
    AND NOT EXISTS (SELECT 1 FROM account_names o
      WHERE o.account_id = n.account_id AND o.name >= $4 AND o.name < n.name)
  ORDER BY n.name, n.username LIMIT $5`;

/** The viewer's agents, which `findAccounts` adds. */
export const OWN_AGENTS = `SELECT ${ACCOUNT} FROM accounts a
  WHERE a.owner_id = $1 AND a.erased_at IS NULL`;

/** Whether names of an account are in the index. */
export const isIndexed = ({ kind, erased_at }: AccountRecord): boolean =>
  kind === "human" && erased_at === null;

/** Whether an earlier version created the account, without names in the index. */
export const LACKS_INDEX = `a.kind = 'human' AND a.erased_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM account_names n WHERE n.account_id = a.id)`;

/** Increments the counter that all names and pictures share. */
export const COUNT_NAME = "UPDATE name_counter SET seq = seq + 1 WHERE id = 1 RETURNING seq";

/** The conversations that show an account: it takes part, or its history is there. */
const SHOWN_IN = `SELECT conversation_id FROM members WHERE account_id = $1
  UNION SELECT conversation_id FROM former_members WHERE account_id = $1`;

export const SHOWING_CONVERSATIONS = `SELECT c.uuid FROM conversations c WHERE c.id IN (${SHOWN_IN})`;

/** The people who take part in a conversation that shows an account. */
export const NAME_READERS = `SELECT DISTINCT a.username
  FROM members m JOIN accounts a ON a.id = m.account_id
  WHERE m.conversation_id IN (${SHOWN_IN}) AND a.kind = 'human' AND a.erased_at IS NULL`;

/** Number of renamed accounts that one page examines. */
const RENAMED_PER_PAGE = 1000;

/**
 * Selects `RenamedRow`s: renamed accounts after a version, and whether they are visible to a viewer.
 * The parameters are the viewer and the version.
 */
export const RENAMED = `SELECT ${PUBLIC_ACCOUNT},
    a.id = $1 OR a.owner_id IS NOT DISTINCT FROM $1
    OR EXISTS (SELECT 1 FROM members mine
      JOIN members theirs ON theirs.conversation_id = mine.conversation_id
      WHERE mine.account_id = $1 AND theirs.account_id = a.id)
    OR EXISTS (SELECT 1 FROM former_members theirs
      JOIN members mine ON mine.conversation_id = theirs.conversation_id
      WHERE theirs.account_id = a.id AND mine.account_id = $1) AS visible
  FROM (SELECT * FROM accounts WHERE version > $2 AND version > 0
        ORDER BY version LIMIT ${RENAMED_PER_PAGE}) a ORDER BY a.version`;

export type RenamedRow = AccountRow & { visible: boolean | number };

/** `rows` are a page of renamed accounts, ordered by version; `current` is the counter of names. */
export function toRenamed(rows: readonly RenamedRow[], current: number): Renamed {
  const has_more = rows.length === RENAMED_PER_PAGE;
  return {
    accounts: rows.filter(({ visible }) => visible).map(publicAccount),
    seq: (has_more && rows.at(-1)?.version) || current,
    has_more,
  };
}
