import type { Account, PolicyOverrides } from "@parley/protocol";
import { type AccountRow, publicAccount } from "../rules/accounts.ts";
import type { PolicySource } from "../rules/policies.ts";
import { accountNames } from "./account-names.ts";
import {
  ACCOUNT,
  ACCOUNTS,
  type AccountRecord,
  accountAs,
  changeAccount,
  PUBLIC_ACCOUNT,
  RETURNED_ACCOUNT,
} from "./account-records.ts";
import { incrementOwnCounter } from "./counters.ts";
import { allAs, column, getAs, insertNew, reader, type Sql } from "./sql.ts";

export type { AccountRecord };

/** Accounts, and the subjects of OIDC issuers that they are linked to. */
export const accountReads = {
  /** The account with that username, suspended and erased ones included. */
  account: (db: Sql, username: string) =>
    db.get<AccountRecord>(`${ACCOUNTS} WHERE a.username = $1`, [username]),
  /** The account of the user whom the embedding product knows by that id. */
  accountByExternalId: (db: Sql, externalId: string) =>
    db.get<AccountRecord>(`${ACCOUNTS} WHERE a.external_id = $1`, [externalId]),
  /** The accounts of a product's users with one of these ids, in no particular order. */
  productAccounts: (db: Sql, externalIds: readonly string[]) =>
    allAs(
      db,
      reader<ProductAccount>({ json: ["metadata", "policy"] }),
      `SELECT ${ACCOUNT}, a.external_id, a.metadata, a.policy
       FROM accounts a WHERE a.external_id = ANY($1::text[])`,
      [db.list(externalIds)],
    ),
  /** The accounts with one of these usernames, in no particular order. */
  accounts: (db: Sql, usernames: readonly string[]) =>
    db.all<AccountRecord>(`${ACCOUNTS} WHERE a.username = ANY($1::text[])`, [db.list(usernames)]),
  /** For sign-in: the account with that username and its password hash. */
  credentials: (db: Sql, username: string) =>
    getAs(db, readCredentials, `${CREDENTIALS} WHERE a.username = $1`, [username]),
  /** What decides on the policy of a person. */
  async policySource(db: Sql, accountId: number): Promise<PolicySource> {
    const source = await getAs(
      db,
      reader<PolicySource>({ json: ["policy"], flags: ["is_product"] }),
      `SELECT a.policy, a.external_id IS NOT NULL AS is_product FROM accounts a WHERE a.id = $1`,
      [accountId],
    );
    return source ?? { is_product: false, policy: null };
  },
  /**
   * A page of accounts with a version above `since` that are visible to the viewer: the viewer, the
   * viewer's agents, and members and former members of the viewer's conversations. Without `since`
   * the page is empty and `seq` is the current value, to start from.
   */
  async renamedSince(db: Sql, viewerId: number, since: number | undefined): Promise<Renamed> {
    const [counter, rows] = await Promise.all([
      db.get<{ seq: number }>("SELECT seq FROM name_counter WHERE id = 1"),
      since === undefined ? [] : db.all<RenamedRow>(RENAMED, [viewerId, since]),
    ]);
    const has_more = rows.length === RENAMED_PER_PAGE;
    return {
      accounts: rows.filter(({ visible }) => visible).map(publicAccount),
      seq: (has_more && rows.at(-1)?.version) || (counter?.seq ?? 0),
      has_more,
    };
  },
  /** Who has to learn a new name of the account: see `NameAudience`. */
  async nameAudience(db: Sql, accountId: number): Promise<NameAudience> {
    const [conversations, usernames] = await Promise.all([
      column<string>(db, `SELECT c.uuid FROM conversations c WHERE c.id IN (${SHOWN_IN})`, [
        accountId,
      ]),
      column<string>(
        db,
        `SELECT DISTINCT a.username FROM members m JOIN accounts a ON a.id = m.account_id
         WHERE m.conversation_id IN (${SHOWN_IN}) AND a.kind = 'human' AND a.erased_at IS NULL`,
        [accountId],
      ),
    ]);
    return { conversations, usernames };
  },
  /** The account that an OIDC issuer's subject is linked to. */
  identity: (db: Sql, issuer: string, subject: string) =>
    db.get<AccountRecord>(
      `SELECT ${ACCOUNT} FROM identities i JOIN accounts a ON a.id = i.account_id
       WHERE i.issuer = $1 AND i.subject = $2`,
      [issuer, subject],
    ),
  /**
   * The person with that username, if they have neither a password nor an identity, and no product
   * has created them. Earlier versions identified OIDC accounts by username alone.
   */
  unlinkedAccount: (db: Sql, username: string) =>
    db.get<AccountRecord>(
      `${ACCOUNTS} WHERE a.username = $1 AND a.kind = 'human' AND a.password_hash IS NULL
         AND a.external_id IS NULL AND a.erased_at IS NULL
         AND NOT EXISTS (SELECT 1 FROM identities i WHERE i.account_id = a.id)`,
      [username],
    ),
};

export const accountWrites = {
  /**
   * Locks an account until the unit ends, and returns its latest state: units that lock the same
   * account take effect one after another. Throws when there is no such account.
   */
  async lockCredentials(db: Sql, accountId: number): Promise<Credentials> {
    await db.ownRow("accounts", accountId);
    const found = await getAs(db, readCredentials, `${CREDENTIALS} WHERE a.id = $1`, [accountId]);
    if (!found) throw missing(accountId);
    return found;
  },
  /** Locks accounts in the same way, and returns those that are not erased, in no particular order. */
  async lockUnerased(db: Sql, accountIds: readonly number[]): Promise<AccountRecord[]> {
    await Promise.all(accountIds.map((id) => db.ownRow("accounts", id)));
    return db.all<AccountRecord>(
      `${ACCOUNTS} WHERE a.id = ANY($1::bigint[]) AND a.erased_at IS NULL`,
      [db.list(accountIds)],
    );
  },
  /** Returns null, and changes nothing, when the username or the external id is taken. */
  async insertAccount(db: Sql, account: NewAccount): Promise<AccountRecord | null> {
    const [made] = await insertAccounts(db, [account]);
    return made ?? null;
  },
  /**
   * Inserts the accounts whose username and external id are free, and returns them in no particular
   * order.
   */
  insertAccounts,
  /** Replaces what the product has set for a person. */
  setPolicy: (db: Sql, accountId: number, policy: PolicyOverrides) =>
    changeAccount(db, accountId, { policy: db.json(policy) }),
  /** Replaces what the product stores with the account. */
  setMetadata: (db: Sql, accountId: number, metadata: Metadata) =>
    changeAccount(db, accountId, { metadata: db.json(metadata) }),
  /**
   * Increments the counter that all names and pictures share and returns its new value, which is the
   * account's new version. Throws when there is no such account.
   */
  async setDisplayName(db: Sql, accountId: number, displayName: string): Promise<number> {
    // A row that does not exist cannot be owned: the unit would wait for it.
    const found = await db.get("SELECT 1 FROM accounts WHERE id = $1", [accountId]);
    if (!found) throw missing(accountId);
    await db.ownRow("accounts", accountId);
    const version = await countName(db);
    const renamed = await db.changed<AccountRecord>(
      `UPDATE accounts SET display_name = $2, version = $3 WHERE id = $1
       RETURNING ${RETURNED_ACCOUNT}`,
      [accountId, displayName, version],
    );
    await db.change("DELETE FROM account_names WHERE account_id = $1", [accountId]);
    await indexNames(db, renamed);
    return version;
  },
  /** Increments the own counter of an account, which must exist, and returns its new value. */
  countOwnChange: incrementOwnCounter,
  /** Replaces the password hash. Sessions stay as they are. */
  setPassword: (db: Sql, accountId: number, passwordHash: string) =>
    changeAccount(db, accountId, { password_hash: passwordHash }),
  /** Returns false, and changes nothing, when the subject is linked to an account already. */
  insertIdentity: (db: Sql, { at, ...identity }: NewIdentity) =>
    insertNew(db, "identities", { ...identity, created_at: at }),
};

/**
 * Increments the counter that all names and pictures share. A unit owns it until it commits, so that
 * versions become visible in their order.
 */
export async function countName(db: Sql): Promise<number> {
  await db.ownRow("name_counter", 1);
  const [counter] = await db.changed<{ seq: number }>(
    "UPDATE name_counter SET seq = seq + 1 WHERE id = 1 RETURNING seq",
  );
  return counter?.seq ?? 0;
}

async function insertAccounts(db: Sql, accounts: readonly NewAccount[]): Promise<AccountRecord[]> {
  if (accounts.length === 0) return [];
  const made = await db.changed<AccountRecord>(
    `INSERT INTO accounts (username, kind, display_name, password_hash, owner_id, provider,
       external_id, metadata, policy, created_at)
     SELECT g.username, g.kind, g.display_name, g.password_hash, g.owner_id, g.provider,
       g.external_id, g.metadata, g.policy, g.at
     FROM jsonb_to_recordset($1::jsonb) AS g (username text, kind text, display_name text,
       password_hash text, owner_id bigint, provider text, external_id text, metadata jsonb,
       policy jsonb, at bigint)
     WHERE true ORDER BY g.username ON CONFLICT DO NOTHING RETURNING ${RETURNED_ACCOUNT}`,
    [db.json(accounts)],
  );
  await indexNames(db, made);
  return made;
}

/** Adds the names of people to the index in which they are found. */
async function indexNames(db: Sql, accounts: readonly AccountRecord[]): Promise<void> {
  const people = accounts.filter(({ kind, erased_at }) => kind === "human" && erased_at === null);
  if (people.length > 0) await db.change(ADD_NAMES, [db.json(people.flatMap(namesOf))]);
}

const ADD_NAMES = `INSERT INTO account_names (name, username, account_id)
  SELECT g.name, g.username, g.account_id
  FROM jsonb_to_recordset($1::jsonb) AS g (name text, username text, account_id bigint)
  WHERE true ON CONFLICT DO NOTHING`;

const namesOf = ({ id, username, display_name }: AccountRecord) =>
  accountNames(username, display_name).map((name) => ({ name, username, account_id: id }));

const missing = (accountId: number) => new Error(`account ${accountId} is missing`);

/** An account with its password hash. */
export interface Credentials {
  readonly account: AccountRecord;
  /** Null for agents, for erased accounts, and for people who sign in without a password. */
  readonly password_hash: string | null;
}

/** What a product stores with a conversation or a message. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** What a product stores with a person. */
export type Metadata = Readonly<Record<string, string>>;

/** An account of a product's user. */
export interface ProductAccount extends AccountRecord {
  readonly external_id: string;
  readonly metadata: Metadata | null;
  readonly policy: PolicyOverrides | null;
}

/** The conversations that show an account, and the usernames of their members who are people. */
export interface NameAudience {
  readonly conversations: readonly string[];
  readonly usernames: readonly string[];
}

/** A page of accounts with new names. The next page starts after `seq`. */
export interface Renamed {
  accounts: Account[];
  seq: number;
  has_more: boolean;
}

export interface NewAccount {
  username: string;
  kind: "human" | "agent";
  display_name: string;
  /** Only for people who sign in with a password. */
  password_hash?: string;
  /** Only for people of a product that embeds the service. */
  external_id?: string;
  metadata?: Metadata | undefined;
  policy?: PolicyOverrides | undefined;
  /** Only for agents. */
  owner_id?: number;
  /** Only for agents. */
  provider?: string;
  at: number;
}

const CREDENTIALS = `SELECT ${accountAs("account")}, a.password_hash FROM accounts a`;
const readCredentials = reader<Credentials>();

/** The conversations that show an account: it takes part, or its history is there. */
const SHOWN_IN = `SELECT conversation_id FROM members WHERE account_id = $1
  UNION SELECT conversation_id FROM former_members WHERE account_id = $1`;

/** Number of renamed accounts that one page examines. */
const RENAMED_PER_PAGE = 1000;

/**
 * Selects `RenamedRow`s: renamed accounts after a version, and whether they are visible to a viewer.
 * The parameters are the viewer and the version.
 */
const RENAMED = `SELECT ${PUBLIC_ACCOUNT},
    a.id = $1 OR a.owner_id IS NOT DISTINCT FROM $1
    OR EXISTS (SELECT 1 FROM members mine
      JOIN members theirs ON theirs.conversation_id = mine.conversation_id
      WHERE mine.account_id = $1 AND theirs.account_id = a.id)
    OR EXISTS (SELECT 1 FROM former_members theirs
      JOIN members mine ON mine.conversation_id = theirs.conversation_id
      WHERE theirs.account_id = a.id AND mine.account_id = $1) AS visible
  FROM (SELECT * FROM accounts WHERE version > $2 AND version > 0
        ORDER BY version LIMIT ${RENAMED_PER_PAGE}) a ORDER BY a.version`;

type RenamedRow = AccountRow & { visible: boolean | number };

export interface NewIdentity {
  issuer: string;
  subject: string;
  account_id: number;
  at: number;
}
