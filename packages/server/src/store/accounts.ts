import type { Account, Policy, PolicyOverrides } from "@parley/protocol";
import type { AccountRecord } from "../rules/accounts.ts";
import type { PolicySource } from "../rules/policies.ts";
import type { Awaitable } from "./awaitable.ts";

export type { AccountRecord };

/**
 * The viewer id that no account has. Views for it show nothing that differs between viewers, such as
 * a viewer's own reactions: they are what events carry.
 */
export const NOBODY = -1;

export interface AccountReads {
  /** The account with that username, suspended and erased ones included. */
  account(username: string): Awaitable<AccountRecord | null>;
  /** The account of the user whom the embedding product knows by that id. */
  accountByExternalId(externalId: string): Awaitable<AccountRecord | null>;
  /** The accounts of a product's users with one of these ids, in no particular order. */
  productAccounts(externalIds: readonly string[]): Awaitable<ProductAccount[]>;
  /** The accounts with one of these usernames, in no particular order. */
  accounts(usernames: readonly string[]): Awaitable<AccountRecord[]>;
  /** For sign-in: the account with that username and its password hash. */
  credentials(username: string): Awaitable<Credentials | null>;
  /**
   * The subset of these accounts that the viewer meets: the viewer, people who take or took part in one
   * of the viewer's conversations, and the agents of all of them. In no particular order.
   */
  sharingAccounts(viewerId: number, accountIds: readonly number[]): Awaitable<number[]>;
  /** What decides on the policy of a person. */
  policySource(accountId: number): Awaitable<PolicySource>;
  /**
   * The people of the directory and the agents that the viewer owns, ordered by username. Erased
   * accounts are returned only if the query names them.
   */
  listAccounts(query: AccountQuery): Awaitable<AccountRecord[]>;
  /**
   * The subset of `listAccounts` with a name that starts with the query. The username counts as a
   * name, and so does the display name from the start of each of its words. Case and accents are
   * ignored. Ordered by the name that matched, then by username, so that an exact match comes first.
   */
  findAccounts(query: FindQuery): Awaitable<FoundAccount[]>;
  /**
   * A page of accounts with a version above `since` that are visible to the viewer: the viewer, the
   * viewer's agents, and members and former members of the viewer's conversations. Without `since`
   * the page is empty and `seq` is the current value, to start from.
   */
  renamedSince(viewerId: number, since: number | undefined): Awaitable<Renamed>;
  /** Who has to learn a new name of the account: see `NameAudience`. */
  nameAudience(accountId: number): Awaitable<NameAudience>;
}

export interface AccountWrites {
  /**
   * Locks an account until the unit ends, and returns its latest state: units that lock the same
   * account take effect one after another. Throws when there is no such account.
   */
  lockCredentials(accountId: number): Awaitable<Credentials>;
  /** Locks accounts in the same way, and returns those that are not erased, in no particular order. */
  lockUnerased(accountIds: readonly number[]): Awaitable<AccountRecord[]>;
  /** Returns null, and changes nothing, when the username or the external id is taken. */
  insertAccount(account: NewAccount): Awaitable<AccountRecord | null>;
  /**
   * Inserts the accounts whose username and external id are free, and returns them in no particular
   * order.
   */
  insertAccounts(accounts: readonly NewAccount[]): Awaitable<AccountRecord[]>;
  /** Replaces what the product has set for a person. */
  setPolicy(accountId: number, policy: PolicyOverrides): Awaitable<void>;
  /** Replaces what the product stores with the account. */
  setMetadata(accountId: number, metadata: Metadata): Awaitable<void>;
  /**
   * Increments the counter that all names and pictures share and returns its new value, which is the
   * account's new version. Throws when there is no such account.
   */
  setDisplayName(accountId: number, displayName: string): Awaitable<number>;
  /** Increments the own counter of an account, which must exist, and returns its new value. */
  countOwnChange(accountId: number): Awaitable<number>;
  /** Replaces the password hash. Sessions stay as they are. */
  setPassword(accountId: number, passwordHash: string): Awaitable<void>;
}

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

/**
 * Whom a viewer can list. `shared`: the viewer, and people who take or took part in one of the viewer's
 * conversations. `none`: the viewer; by name, as with `shared`. Default: everyone.
 */
export type Directory = Policy["directory"];

export interface AccountQuery {
  viewerId: number;
  directory?: Directory | undefined;
  /** Return only accounts with one of these usernames. */
  usernames?: readonly string[] | undefined;
  /** Return only usernames after this one. */
  after?: string | undefined;
  limit: number;
}

export interface FindQuery {
  viewerId: number;
  directory?: Directory | undefined;
  query: string;
  /** Return only accounts after this position of the list. */
  after?: { name: string; username: string } | undefined;
  limit: number;
}

export interface FoundAccount extends AccountRecord {
  /** The name that matched, without case and accents. */
  name: string;
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
