import type { Account } from "@parley/protocol";
import { type AccountRow, publicAccount } from "../../rules/accounts.ts";
import type { AccountRecord, Metadata, ProductAccount, Renamed } from "../accounts.ts";

/** Columns of an `AccountRecord`, from a table with the alias `a`. */
export const ACCOUNT = `a.id, a.username, a.kind, a.display_name, a.version,
  a.owner_id, a.provider, a.suspended_at, a.erased_at`;

/** Columns of an `AccountRow`, from a table with the alias `a`. */
export const PUBLIC_ACCOUNT = "a.username, a.kind, a.display_name, a.version, a.erased_at";

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

/** SQLite returns JSON as text, PostgreSQL as a value. */
export const toProductAccount = (row: ProductRow): ProductAccount => ({
  ...row,
  metadata:
    typeof row.metadata === "string" ? (JSON.parse(row.metadata) as Metadata) : row.metadata,
});

export type CredentialsRow = AccountRecord & { password_hash: string | null };

export const toCredentials = (row: CredentialsRow) => ({
  account: accountOf(row),
  password_hash: row.password_hash,
});

/** The conversations that show the account with this id: it takes part, or its history is there. */
const SHOWN_IN = (id: string) => `SELECT conversation_id FROM members WHERE account_id = ${id}
  UNION SELECT conversation_id FROM former_members WHERE account_id = ${id}`;

/** Whether a conversation of the viewer shows the account with the alias `a`. */
export const SHOWN_TO = (viewer: string) => `EXISTS (SELECT 1 FROM members mine
    JOIN members theirs ON theirs.conversation_id = mine.conversation_id
    WHERE mine.account_id = ${viewer} AND theirs.account_id = a.id)
  OR EXISTS (SELECT 1 FROM former_members theirs
    JOIN members mine ON mine.conversation_id = theirs.conversation_id
    WHERE theirs.account_id = a.id AND mine.account_id = ${viewer})`;

export const SHOWING_CONVERSATIONS = (id: string) =>
  `SELECT c.uuid FROM conversations c WHERE c.id IN (${SHOWN_IN(id)})`;

/** The people who take part in a conversation that shows the account. */
export const NAME_READERS = (id: string) => `SELECT DISTINCT a.username
  FROM members m JOIN accounts a ON a.id = m.account_id
  WHERE m.conversation_id IN (${SHOWN_IN(id)}) AND a.kind = 'human' AND a.erased_at IS NULL`;

/** Number of renamed accounts that one page examines. */
export const RENAMED_PER_PAGE = 1000;

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
