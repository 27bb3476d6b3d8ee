import type { Policy } from "@parley/protocol";
import type { AccountRecord } from "../rules/accounts.ts";
import { type FoundAccount, type NameQuery, nameRange, withAgents } from "./account-names.ts";
import { ACCOUNT, ACCOUNTS } from "./account-records.ts";
import { type Either, type Fragment, type Sql, sql } from "./sql.ts";

/** Which accounts a viewer meets, lists and finds. */
export const directoryReads = {
  /**
   * The subset of these accounts that the viewer meets: the viewer, people who take or took part in one
   * of the viewer's conversations, and the agents of all of them. In no particular order.
   */
  sharingAccounts: (db: Sql, viewerId: number, accountIds: readonly number[]) =>
    db.column<number>`
      SELECT a.id FROM accounts a
      WHERE a.id = ANY(${accountIds}::bigint[]) AND ${isMet(viewerId)}`,
  /**
   * The people of the directory and the agents that the viewer owns, ordered by username. Erased
   * accounts are returned only if the query names them.
   */
  listAccounts(db: Sql, query: AccountQuery) {
    const { viewerId, directory = "everyone", after = "", usernames, limit } = query;
    const isListed = sql`(a.kind = 'human' OR a.owner_id = ${viewerId}) AND a.username > ${after}`;
    if (usernames) {
      return db.all<AccountRecord>`
        ${ACCOUNTS} WHERE a.username = ANY(${usernames}::text[]) AND ${isListed}
          AND ${directory === "everyone" ? sql`true` : isMet(viewerId)}
        ORDER BY a.username LIMIT ${limit}`;
    }
    const among = (people: Fragment) => sql`(${people}
      UNION SELECT id FROM accounts WHERE owner_id = ${viewerId}) p
      ${JOIN} accounts a ON a.id = p.account_id`;
    const people = peopleOf(directory, viewerId);
    return db.all<AccountRecord>`
      SELECT ${ACCOUNT} FROM ${people ? among(people) : sql`accounts a`}
      WHERE ${isListed} AND a.erased_at IS NULL ORDER BY a.username LIMIT ${limit}`;
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
    const people = peopleOf(directory, viewerId);
    const names = people
      ? sql`(${people}) p ${JOIN} account_names n ON n.account_id = p.account_id`
      : sql`account_names n`;
    // An account that matches by several names is found once, under the first of them.
    const found = await db.all<FoundAccount>`
      SELECT ${ACCOUNT}, n.name FROM ${names} ${JOIN} accounts a ON a.id = n.account_id
      WHERE (n.name, n.username) > (${after.name}, ${after.username}) AND n.name < ${end}
        AND NOT EXISTS (SELECT 1 FROM account_names o
          WHERE o.account_id = n.account_id AND o.name >= ${prefix} AND o.name < n.name)
      ORDER BY n.name, n.username LIMIT ${limit}`;
    const agents = await db.all<AccountRecord>`
      ${ACCOUNTS} WHERE a.owner_id = ${viewerId} AND a.erased_at IS NULL`;
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

/** The people of a directory; null if it lists everyone. */
function peopleOf(directory: Directory, viewerId: number): Fragment | null {
  if (directory === "everyone") return null;
  const viewer = sql`SELECT CAST(${viewerId} AS bigint) AS account_id`;
  if (directory === "none") return viewer;
  return sql`${viewer}
    UNION SELECT o.account_id FROM members mine
      JOIN members o ON o.conversation_id = mine.conversation_id WHERE mine.account_id = ${viewerId}
    UNION SELECT o.account_id FROM members mine
      JOIN former_members o ON o.conversation_id = mine.conversation_id
      WHERE mine.account_id = ${viewerId}`;
}

/** Whether the viewer meets the person of an account. */
const isMet = (viewerId: number) => sql`(coalesce(a.owner_id, a.id) = ${viewerId}
  OR EXISTS (SELECT 1 FROM members mine
    JOIN members o ON o.conversation_id = mine.conversation_id
    WHERE mine.account_id = ${viewerId} AND o.account_id = coalesce(a.owner_id, a.id))
  OR EXISTS (SELECT 1 FROM members mine
    JOIN former_members o ON o.conversation_id = mine.conversation_id
    WHERE mine.account_id = ${viewerId} AND o.account_id = coalesce(a.owner_id, a.id)))`;

/**
 * SQLite must not begin with all accounts instead of the few that a viewer meets. It takes CROSS JOIN for
 * that, with a condition that PostgreSQL refuses.
 */
const JOIN: Either = { postgres: sql`JOIN`, sqlite: sql`CROSS JOIN` };
