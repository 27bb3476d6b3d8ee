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
import { json, raw, reader, type Sql, sql } from "./sql.ts";

export type { AccountRecord };

/** Accounts, and the subjects of OIDC issuers that they are linked to. */
export const accountReads = {
  /** The account with that username, suspended and erased ones included. */
  account: (db: Sql, username: string) =>
    db.get<AccountRecord>`${ACCOUNTS} WHERE a.username = ${username}`,
  /** The account of the user whom the embedding product knows by that id. */
  accountByExternalId: (db: Sql, externalId: string) =>
    db.get<AccountRecord>`${ACCOUNTS} WHERE a.external_id = ${externalId}`,
  /** The accounts of a product's users with one of these ids, in no particular order. */
  productAccounts: (db: Sql, externalIds: readonly string[]) =>
    db.allAs(readProductAccount)`
      SELECT ${ACCOUNT}, a.external_id, a.metadata, a.policy
      FROM accounts a WHERE a.external_id = ANY(${externalIds}::text[])`,
  /** The accounts with one of these usernames, in no particular order. */
  accounts: (db: Sql, usernames: readonly string[]) =>
    db.all<AccountRecord>`${ACCOUNTS} WHERE a.username = ANY(${usernames}::text[])`,
  /** For sign-in: the account with that username and its password hash. */
  credentials: (db: Sql, username: string) =>
    db.getAs(readCredentials)`${CREDENTIALS} WHERE a.username = ${username}`,
  /** What decides on the policy of a person. */
  async policySource(db: Sql, accountId: number): Promise<PolicySource> {
    const source = await db.getAs(readPolicySource)`
      SELECT policy, external_id IS NOT NULL AS is_product FROM accounts WHERE id = ${accountId}`;
    return source ?? { is_product: false, policy: null };
  },
  /**
   * A page of accounts with a version above `since` that are visible to the viewer: the viewer, the
   * viewer's agents, and members and former members of the viewer's conversations. Without `since`
   * the page is empty and `seq` is the current value, to start from.
   */
  async renamedSince(db: Sql, viewerId: number, since: number | undefined): Promise<Renamed> {
    const [counter, rows] = await Promise.all([
      db.firstNumber`SELECT seq FROM name_counter WHERE id = 1`,
      since === undefined ? [] : renamedRows(db, viewerId, since),
    ]);
    const has_more = rows.length === RENAMED_PER_PAGE;
    return {
      accounts: rows.filter(({ visible }) => visible).map(publicAccount),
      seq: (has_more && rows.at(-1)?.version) || counter,
      has_more,
    };
  },
  /** Who has to learn a new name of the account: see `NameAudience`. */
  async nameAudience(db: Sql, accountId: number): Promise<NameAudience> {
    const [conversations, usernames] = await Promise.all([
      db.column<string>`SELECT c.uuid FROM conversations c WHERE c.id IN (${shownIn(accountId)})`,
      db.column<string>`
        SELECT DISTINCT a.username FROM members m JOIN accounts a ON a.id = m.account_id
        WHERE m.conversation_id IN (${shownIn(accountId)}) AND a.kind = 'human'
          AND a.erased_at IS NULL`,
    ]);
    return { conversations, usernames };
  },
  /** The account that an OIDC issuer's subject is linked to. */
  identity: (db: Sql, issuer: string, subject: string) =>
    db.get<AccountRecord>`
      SELECT ${ACCOUNT} FROM identities i JOIN accounts a ON a.id = i.account_id
      WHERE i.issuer = ${issuer} AND i.subject = ${subject}`,
  /**
   * The person with that username, if they have neither a password nor an identity, and no product
   * has created them. Earlier versions identified OIDC accounts by username alone.
   */
  unlinkedAccount: (db: Sql, username: string) =>
    db.get<AccountRecord>`
      ${ACCOUNTS} WHERE a.username = ${username} AND a.kind = 'human' AND a.password_hash IS NULL
        AND a.external_id IS NULL AND a.erased_at IS NULL
        AND NOT EXISTS (SELECT 1 FROM identities i WHERE i.account_id = a.id)`,
};

export const accountWrites = {
  /**
   * Locks an account until the unit ends, and returns its latest state: units that lock the same
   * account take effect one after another. Throws when there is no such account.
   */
  async lockCredentials(db: Sql, accountId: number): Promise<Credentials> {
    await db.ownRow("accounts", accountId);
    const found = await db.getAs(readCredentials)`${CREDENTIALS} WHERE a.id = ${accountId}`;
    if (!found) throw missing(accountId);
    return found;
  },
  /** Locks accounts in the same way, and returns those that are not erased, in no particular order. */
  async lockUnerased(db: Sql, accountIds: readonly number[]): Promise<AccountRecord[]> {
    await Promise.all(accountIds.map((id) => db.ownRow("accounts", id)));
    return db.all<AccountRecord>`
      ${ACCOUNTS} WHERE a.id = ANY(${accountIds}::bigint[]) AND a.erased_at IS NULL`;
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
    changeAccount(db, accountId, { policy: json(policy) }),
  /** Replaces what the product stores with the account. */
  setMetadata: (db: Sql, accountId: number, metadata: Metadata) =>
    changeAccount(db, accountId, { metadata: json(metadata) }),
  /**
   * Increments the counter that all names and pictures share and returns its new value, which is the
   * account's new version. Throws when there is no such account.
   */
  async setDisplayName(db: Sql, accountId: number, displayName: string): Promise<number> {
    // A row that does not exist cannot be owned: the unit would wait for it.
    const isKnown = await db.exists`SELECT 1 FROM accounts WHERE id = ${accountId}`;
    if (!isKnown) throw missing(accountId);
    await db.ownRow("accounts", accountId);
    const version = await countName(db);
    const renamed = await db.changed<AccountRecord>`
      UPDATE accounts SET display_name = ${displayName}, version = ${version}
      WHERE id = ${accountId} RETURNING ${RETURNED_ACCOUNT}`;
    await db.change`DELETE FROM account_names WHERE account_id = ${accountId}`;
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
    db.insertNew("identities", { ...identity, created_at: at }),
};

/**
 * Increments the counter that all names and pictures share. A unit owns it until it commits, so that
 * versions become visible in their order.
 */
export async function countName(db: Sql): Promise<number> {
  await db.ownRow("name_counter", 1);
  const [counter] = await db.changed<{ seq: number }>`
    UPDATE name_counter SET seq = seq + 1 WHERE id = 1 RETURNING seq`;
  return counter?.seq ?? 0;
}

async function insertAccounts(db: Sql, accounts: readonly NewAccount[]): Promise<AccountRecord[]> {
  if (accounts.length === 0) return [];
  const made = await db.changed<AccountRecord>`
    INSERT INTO accounts (username, kind, display_name, password_hash, owner_id, provider,
      external_id, metadata, policy, created_at)
    SELECT g.username, g.kind, g.display_name, g.password_hash, g.owner_id, g.provider,
      g.external_id, g.metadata, g.policy, g.at
    FROM jsonb_to_recordset(${json(accounts)}::jsonb) AS g (username text, kind text,
      display_name text, password_hash text, owner_id bigint, provider text, external_id text,
      metadata jsonb, policy jsonb, at bigint)
    WHERE true ORDER BY g.username ON CONFLICT DO NOTHING RETURNING ${RETURNED_ACCOUNT}`;
  await indexNames(db, made);
  return made;
}

/** Adds the names of people to the index in which they are found. */
async function indexNames(db: Sql, accounts: readonly AccountRecord[]): Promise<void> {
  const people = accounts.filter(({ kind, erased_at }) => kind === "human" && erased_at === null);
  if (people.length === 0) return;
  await db.change`
    INSERT INTO account_names (name, username, account_id)
    SELECT g.name, g.username, g.account_id
    FROM jsonb_to_recordset(${json(people.flatMap(namesOf))}::jsonb)
      AS g (name text, username text, account_id bigint)
    WHERE true ON CONFLICT DO NOTHING`;
}

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

const CREDENTIALS = sql`SELECT ${accountAs("account")}, a.password_hash FROM accounts a`;
const readCredentials = reader<Credentials>();
const readProductAccount = reader<ProductAccount>({ json: ["metadata", "policy"] });
const readPolicySource = reader<PolicySource>({ json: ["policy"], flags: ["is_product"] });

/** The conversations that show an account: it takes part, or its history is there. */
const shownIn = (accountId: number) => sql`
  SELECT conversation_id FROM members WHERE account_id = ${accountId}
  UNION SELECT conversation_id FROM former_members WHERE account_id = ${accountId}`;

/** Number of renamed accounts that one page examines. */
const RENAMED_PER_PAGE = 1000;

/** Renamed accounts after a version, and whether they are visible to a viewer. */
const renamedRows = (db: Sql, viewerId: number, since: number) => db.all<RenamedRow>`
  SELECT ${PUBLIC_ACCOUNT},
    a.id = ${viewerId} OR a.owner_id IS NOT DISTINCT FROM ${viewerId}
    OR EXISTS (SELECT 1 FROM members mine
      JOIN members theirs ON theirs.conversation_id = mine.conversation_id
      WHERE mine.account_id = ${viewerId} AND theirs.account_id = a.id)
    OR EXISTS (SELECT 1 FROM former_members theirs
      JOIN members mine ON mine.conversation_id = theirs.conversation_id
      WHERE theirs.account_id = a.id AND mine.account_id = ${viewerId}) AS visible
  FROM (SELECT * FROM accounts WHERE version > ${since} AND version > 0
        ORDER BY version LIMIT ${raw(RENAMED_PER_PAGE)}) a ORDER BY a.version`;

type RenamedRow = AccountRow & { visible: boolean | number };

export interface NewIdentity {
  issuer: string;
  subject: string;
  account_id: number;
  at: number;
}
