import type { Account, PolicyOverrides } from "@parley/protocol";
import { type AccountRow, publicAccount } from "../../rules/accounts.ts";
import type { PolicySource } from "../../rules/policies.ts";
import type { AccountRecord, Directory, Metadata, ProductAccount, Renamed } from "../accounts.ts";
import type { Sql } from "../sql.ts";
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

/** Accounts as all viewers see them, by id. */
export async function accountsById(db: Sql, ids: readonly number[]): Promise<Map<number, Account>> {
  if (ids.length === 0) return new Map();
  const rows = await db.all<AccountRow & { id: number }>(
    `SELECT a.id, ${PUBLIC_ACCOUNT} FROM accounts a WHERE a.id = ANY($1::bigint[])`,
    db.list(ids),
  );
  return new Map(rows.map((row) => [row.id, publicAccount(row)]));
}

export type ProductRow = AccountRecord & {
  external_id: string;
  metadata: string | Metadata | null;
  policy: string | PolicyOverrides | null;
};

export const toProductAccount = (row: ProductRow): ProductAccount => ({
  ...row,
  metadata: decoded(row.metadata),
  policy: decoded(row.policy),
});

/** Selects a `PolicyRow`. */
export const POLICY_SOURCE = `SELECT a.policy, a.external_id IS NOT NULL AS is_product
  FROM accounts a WHERE a.id = $1`;

export interface PolicyRow {
  policy: string | PolicyOverrides | null;
  is_product: boolean | number;
}

export const toPolicySource = (row: PolicyRow | null): PolicySource => ({
  is_product: Boolean(row?.is_product),
  policy: row && decoded(row.policy),
});

/** Inserts an account, and returns its `AccountRecord` unless its username or external id is taken. */
export const INSERT_ACCOUNT = `INSERT INTO accounts (username, kind, display_name, password_hash,
    owner_id, provider, external_id, metadata, policy, created_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING
  RETURNING ${columnsOf("accounts", COLUMNS)}`;

export type CredentialsRow = AccountRecord & { password_hash: string | null };

export const toCredentials = (row: CredentialsRow) => ({
  account: accountOf(row),
  password_hash: row.password_hash,
});

/** Whether `listAccounts` returns an account to the viewer, parameter 1, after the username, parameter 2. */
export const IS_LISTED = "(a.kind = 'human' OR a.owner_id = $1) AND a.username > $2";

/** Whom a viewer meets: the viewer, and who takes or took part in one of the viewer's conversations. */
const met = (viewer: string) => `SELECT CAST(${viewer} AS bigint) AS account_id
  UNION SELECT o.account_id FROM members mine
    JOIN members o ON o.conversation_id = mine.conversation_id WHERE mine.account_id = ${viewer}
  UNION SELECT o.account_id FROM members mine
    JOIN former_members o ON o.conversation_id = mine.conversation_id
    WHERE mine.account_id = ${viewer}`;

/** Whether the viewer, parameter 1, meets the person of an account. */
export const IS_MET = `(coalesce(a.owner_id, a.id) = $1
  OR EXISTS (SELECT 1 FROM members mine
    JOIN members o ON o.conversation_id = mine.conversation_id
    WHERE mine.account_id = $1 AND o.account_id = coalesce(a.owner_id, a.id))
  OR EXISTS (SELECT 1 FROM members mine
    JOIN former_members o ON o.conversation_id = mine.conversation_id
    WHERE mine.account_id = $1 AND o.account_id = coalesce(a.owner_id, a.id)))`;

type Limited = Exclude<Directory, "everyone">;
/** Keeps SQLite from beginning with all accounts instead of the few that a viewer meets. */
type Join = "JOIN" | "CROSS JOIN";

/** The people of a directory that does not list everyone. */
const peopleOf = (directory: Limited, viewer: string) =>
  directory === "shared" ? met(viewer) : `SELECT CAST(${viewer} AS bigint) AS account_id`;

/** `listAccounts` without names, for each directory. */
export const listAccounts = (join: Join): Record<Directory, string> => {
  const list = (from: string) => `SELECT ${ACCOUNT} FROM ${from}
    WHERE ${IS_LISTED} AND a.erased_at IS NULL ORDER BY a.username LIMIT $3`;
  const limited = (directory: Limited) =>
    list(`(${peopleOf(directory, "$1")}
      UNION SELECT id FROM accounts WHERE owner_id = $1) p ${join} accounts a ON a.id = p.account_id`);
  return { everyone: list("accounts a"), shared: limited("shared"), none: limited("none") };
};

/** `findAccounts` for each directory. Only those that are limited have parameter 6, the viewer. */
export const findAccounts = (join: Join): Record<Directory, string> => {
  const limited = (directory: Limited) =>
    find(`(${peopleOf(directory, "$6")}) p ${join} account_names n ON n.account_id = p.account_id`);
  // An account that matches by several names is listed once, under the first of them.
  const find = (from: string) => `SELECT ${ACCOUNT}, n.name
  FROM ${from} ${join} accounts a ON a.id = n.account_id
  WHERE (n.name, n.username) > ($1, $2) AND n.name < $3
    AND NOT EXISTS (SELECT 1 FROM account_names o
      WHERE o.account_id = n.account_id AND o.name >= $4 AND o.name < n.name)
  ORDER BY n.name, n.username LIMIT $5`;
  return { everyone: find("account_names n"), shared: limited("shared"), none: limited("none") };
};

/** The viewer's agents, which `findAccounts` adds. */
export const OWN_AGENTS = `SELECT ${ACCOUNT} FROM accounts a
  WHERE a.owner_id = $1 AND a.erased_at IS NULL`;

/** Whether names of an account are in the index. */
export const isIndexed = ({ kind, erased_at }: AccountRecord): boolean =>
  kind === "human" && erased_at === null;

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
