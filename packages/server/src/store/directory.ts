import type { Policy } from "@parley/protocol";
import type { AccountRecord } from "../rules/accounts.ts";
import { type FoundAccount, type NameQuery, nameRange, withAgents } from "./account-names.ts";
import { ACCOUNT, ACCOUNTS } from "./account-records.ts";
import { column, type Sql, type Statement } from "./sql.ts";

/** Which accounts a viewer meets, lists and finds. */
export const directoryReads = {
  /**
   * The subset of these accounts that the viewer meets: the viewer, people who take or took part in one
   * of the viewer's conversations, and the agents of all of them. In no particular order.
   */
  sharingAccounts: (db: Sql, viewerId: number, accountIds: readonly number[]) =>
    column<number>(db, `SELECT a.id FROM accounts a WHERE a.id = ANY($2::bigint[]) AND ${IS_MET}`, [
      viewerId,
      db.list(accountIds),
    ]),
  /**
   * The people of the directory and the agents that the viewer owns, ordered by username. Erased
   * accounts are returned only if the query names them.
   */
  listAccounts(db: Sql, query: AccountQuery) {
    const { viewerId, directory = "everyone", after = "", usernames, limit } = query;
    if (!usernames) return db.all<AccountRecord>(LISTS[directory], [viewerId, after, limit]);
    return db.all<AccountRecord>(
      `${ACCOUNTS} WHERE a.username = ANY($3::text[]) AND ${IS_LISTED}
         ${directory === "everyone" ? "" : `AND ${IS_MET}`}
       ORDER BY a.username LIMIT $4`,
      [viewerId, after, db.list(usernames), limit],
    );
  },
  /**
   * The subset of `listAccounts` with a name that starts with the query. The username counts as a
   * name, and so does the display name from the start of each of its words. Case and accents are
   * ignored. Ordered by the name that matched, then by username, so that an exact match comes first.
   */
  async findAccounts(db: Sql, query: FindQuery): Promise<FoundAccount[]> {
    const range = nameRange(query);
    if (!range) return [];
    const { prefix, after, end } = range;
    const { viewerId, directory = "everyone", limit } = query;
    const found = await db.all<FoundAccount>(SEARCHES[directory], [
      after.name,
      after.username,
      end,
      prefix,
      limit,
      ...(directory === "everyone" ? [] : [viewerId]),
    ]);
    const agents = await db.all<AccountRecord>(
      `${ACCOUNTS} WHERE a.owner_id = $1 AND a.erased_at IS NULL`,
      [viewerId],
    );
    return withAgents(found, agents, range, limit);
  },
};

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

export interface FindQuery extends NameQuery {
  viewerId: number;
  directory?: Directory | undefined;
  limit: number;
}

/** Whether `listAccounts` returns an account to the viewer, parameter 1, after the username, parameter 2. */
const IS_LISTED = "(a.kind = 'human' OR a.owner_id = $1) AND a.username > $2";

/** Whom a viewer meets: the viewer, and who takes or took part in one of the viewer's conversations. */
const met = (viewer: string) => `SELECT CAST(${viewer} AS bigint) AS account_id
  UNION SELECT o.account_id FROM members mine
    JOIN members o ON o.conversation_id = mine.conversation_id WHERE mine.account_id = ${viewer}
  UNION SELECT o.account_id FROM members mine
    JOIN former_members o ON o.conversation_id = mine.conversation_id
    WHERE mine.account_id = ${viewer}`;

/** Whether the viewer, parameter 1, meets the person of an account. */
const IS_MET = `(coalesce(a.owner_id, a.id) = $1
  OR EXISTS (SELECT 1 FROM members mine
    JOIN members o ON o.conversation_id = mine.conversation_id
    WHERE mine.account_id = $1 AND o.account_id = coalesce(a.owner_id, a.id))
  OR EXISTS (SELECT 1 FROM members mine
    JOIN former_members o ON o.conversation_id = mine.conversation_id
    WHERE mine.account_id = $1 AND o.account_id = coalesce(a.owner_id, a.id)))`;

type Limited = Exclude<Directory, "everyone">;
type Join = "JOIN" | "CROSS JOIN";

/** The people of a directory that does not list everyone. */
const peopleOf = (directory: Limited, viewer: string) =>
  directory === "shared" ? met(viewer) : `SELECT CAST(${viewer} AS bigint) AS account_id`;

/**
 * A statement in which SQLite must not begin with all accounts instead of the few that a viewer meets.
 * It takes CROSS JOIN for that, with a condition that PostgreSQL refuses.
 */
const statement = (make: (join: Join) => string): Statement => ({
  postgres: make("JOIN"),
  sqlite: make("CROSS JOIN"),
});

const list = (from: string) => `SELECT ${ACCOUNT} FROM ${from}
  WHERE ${IS_LISTED} AND a.erased_at IS NULL ORDER BY a.username LIMIT $3`;

const listAmong = (directory: Limited) =>
  statement((join) =>
    list(`(${peopleOf(directory, "$1")}
      UNION SELECT id FROM accounts WHERE owner_id = $1) p ${join} accounts a ON a.id = p.account_id`),
  );

/** `listAccounts` without names. */
const LISTS: Record<Directory, Statement> = {
  everyone: list("accounts a"),
  shared: listAmong("shared"),
  none: listAmong("none"),
};

/** An account that matches by several names is found once, under the first of them. */
const find = (from: string, join: Join) => `SELECT ${ACCOUNT}, n.name
  FROM ${from} ${join} accounts a ON a.id = n.account_id
  WHERE (n.name, n.username) > ($1, $2) AND n.name < $3
    AND NOT EXISTS (SELECT 1 FROM account_names o
      WHERE o.account_id = n.account_id AND o.name >= $4 AND o.name < n.name)
  ORDER BY n.name, n.username LIMIT $5`;

const findAmong = (directory: Limited) =>
  statement((join) =>
    find(
      `(${peopleOf(directory, "$6")}) p ${join} account_names n ON n.account_id = p.account_id`,
      join,
    ),
  );

/** `findAccounts` without agents. Only limited directories have parameter 6, the viewer. */
const SEARCHES: Record<Directory, Statement> = {
  everyone: statement((join) => find("account_names n", join)),
  shared: findAmong("shared"),
  none: findAmong("none"),
};
