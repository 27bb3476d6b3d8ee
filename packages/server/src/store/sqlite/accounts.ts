import type {
  AccountReads,
  AccountRecord,
  AccountWrites,
  Directory,
  FoundAccount,
  NewAccount,
} from "../accounts.ts";
import { accountNames, nameRange, withAgents } from "../shared/account-names.ts";
import {
  ACCOUNT,
  COUNT_NAME,
  type CredentialsRow,
  findAccounts,
  INSERT_ACCOUNT,
  IS_LISTED,
  IS_MET,
  isIndexed,
  listAccounts,
  NAME_READERS,
  OWN_AGENTS,
  POLICY_SOURCE,
  type PolicyRow,
  type ProductRow,
  RENAMED,
  type RenamedRow,
  SHOWING_CONVERSATIONS,
  toCredentials,
  toPolicySource,
  toProductAccount,
  toRenamed,
} from "../shared/accounts.ts";
import type { Connection } from "./connection.ts";
import { incrementOwnCounter } from "./own-counter.ts";

export function accountReads(db: Connection): AccountReads {
  const byUsername = db.query<AccountRecord>(
    `SELECT ${ACCOUNT} FROM accounts a WHERE a.username = ?`,
  );
  const byExternalId = db.query<AccountRecord>(
    `SELECT ${ACCOUNT} FROM accounts a WHERE a.external_id = ?`,
  );
  const byExternalIds = db.query<ProductRow>(
    `SELECT ${ACCOUNT}, a.external_id, a.metadata, a.policy
     FROM json_each(?) j JOIN accounts a ON a.external_id = j.value`,
  );
  const byUsernames = db.query<AccountRecord>(
    `SELECT ${ACCOUNT} FROM json_each(?) j JOIN accounts a ON a.username = j.value`,
  );
  const withPassword = db.query<CredentialsRow>(
    `SELECT ${ACCOUNT}, a.password_hash FROM accounts a WHERE a.username = ?`,
  );
  const list = forEach(listAccounts("CROSS JOIN"), (sql) => db.query<AccountRecord>(sql));
  const listNamed = (condition: string) =>
    db.query<AccountRecord>(
      `SELECT ${ACCOUNT} FROM json_each($3) j JOIN accounts a ON a.username = j.value
       WHERE ${condition} GROUP BY a.id ORDER BY a.username LIMIT $4`,
    );
  const anyNamed = listNamed(IS_LISTED);
  const metNamed = listNamed(`${IS_LISTED} AND ${IS_MET}`);
  const find = forEach(findAccounts("CROSS JOIN"), (sql) => db.query<FoundAccount>(sql));
  const sharing = db.query<{ id: number }>(
    `SELECT a.id FROM json_each($2) j JOIN accounts a ON a.id = j.value WHERE ${IS_MET}`,
  );
  const policySource = db.query<PolicyRow>(POLICY_SOURCE);
  const owned = db.query<AccountRecord>(OWN_AGENTS);
  const nameCounter = db.query<{ seq: number }>("SELECT seq FROM name_counter WHERE id = 1");
  const renamed = db.query<RenamedRow>(RENAMED);
  const showing = db.query<{ uuid: string }>(SHOWING_CONVERSATIONS);
  const readers = db.query<{ username: string }>(NAME_READERS);
  return {
    nameAudience: (accountId) => ({
      conversations: showing.all(accountId).map(({ uuid }) => uuid),
      usernames: readers.all(accountId).map(({ username }) => username),
    }),
    renamedSince: (viewerId, since) =>
      toRenamed(
        since === undefined ? [] : renamed.all(viewerId, since),
        nameCounter.get()?.seq ?? 0,
      ),
    account: (username) => byUsername.get(username),
    accountByExternalId: (externalId) => byExternalId.get(externalId),
    productAccounts: (externalIds) =>
      byExternalIds.all(JSON.stringify(externalIds)).map(toProductAccount),
    accounts: (usernames) => byUsernames.all(JSON.stringify(usernames)),
    credentials: (username) => {
      const row = withPassword.get(username);
      return row && toCredentials(row);
    },
    sharingAccounts: (viewerId, ids) =>
      sharing.all(viewerId, JSON.stringify(ids)).map(({ id }) => id),
    policySource: (id) => toPolicySource(policySource.get(id)),
    listAccounts: ({ viewerId, directory = "everyone", after = "", usernames, limit }) => {
      if (!usernames) return list[directory].all(viewerId, after, limit);
      const named = directory === "everyone" ? anyNamed : metNamed;
      return named.all(viewerId, after, JSON.stringify(usernames), limit);
    },
    findAccounts: (query) => {
      const range = nameRange(query);
      if (!range) return [];
      const { prefix, after, end } = range;
      const { viewerId, directory = "everyone" } = query;
      const viewer = directory === "everyone" ? [] : [viewerId];
      const values = [after.name, after.username, end, prefix, query.limit, ...viewer];
      const found = find[directory].all(...values);
      return withAgents(found, owned.all(query.viewerId), range, query.limit);
    },
  };
}

export function accountWrites(db: Connection): AccountWrites {
  const insert = db.change<AccountRecord>(INSERT_ACCOUNT);
  const countName = db.change<{ seq: number }>(COUNT_NAME);
  const rename = db.change("UPDATE accounts SET display_name = ?2, version = ?3 WHERE id = ?1");
  const dropNames = db.change("DELETE FROM account_names WHERE account_id = ?");
  const addNames = db.change(ADD_NAMES);
  const byId = db.query<AccountRecord>(`SELECT ${ACCOUNT} FROM accounts a WHERE a.id = ?`);
  const withPassword = db.query<CredentialsRow>(
    `SELECT ${ACCOUNT}, a.password_hash FROM accounts a WHERE a.id = ?`,
  );
  const index = (account: AccountRecord) => {
    if (!isIndexed(account)) return;
    const { id, username, display_name } = account;
    addNames.run(id, JSON.stringify(accountNames(username, display_name)));
  };
  const password = db.change("UPDATE accounts SET password_hash = ?2 WHERE id = ?1");
  const restrict = db.change("UPDATE accounts SET policy = ?2 WHERE id = ?1");
  const describe = db.change("UPDATE accounts SET metadata = ?2 WHERE id = ?1");
  const insertAccount = (account: NewAccount) => {
    const made = insert.get(
      account.username,
      account.kind,
      account.display_name,
      account.password_hash ?? null,
      account.owner_id ?? null,
      account.provider ?? null,
      account.external_id ?? null,
      account.metadata ? JSON.stringify(account.metadata) : null,
      account.policy ? JSON.stringify(account.policy) : null,
      account.at,
    );
    if (made) index(made);
    return made;
  };
  return {
    // Units that write run one after another: none needs a lock.
    lockCredentials: (id) => {
      const row = withPassword.get(id);
      if (!row) throw new Error(`account ${id} is missing`);
      return toCredentials(row);
    },
    lockUnerased: (ids) =>
      ids.flatMap((id) => byId.get(id) ?? []).filter(({ erased_at }) => erased_at === null),
    insertAccount,
    insertAccounts: (accounts) => accounts.flatMap((account) => insertAccount(account) ?? []),
    setPolicy: (id, policy) => void restrict.run(id, JSON.stringify(policy)),
    setMetadata: (id, metadata) => void describe.run(id, JSON.stringify(metadata)),
    setDisplayName: (id, displayName) => {
      const version = countName.get()?.seq ?? 0;
      rename.run(id, displayName, version);
      dropNames.run(id);
      const renamed = byId.get(id);
      if (!renamed) throw new Error(`account ${id} is missing`);
      index(renamed);
      return version;
    },
    countOwnChange: incrementOwnCounter(db),
    setPassword: (id, hash) => void password.run(id, hash),
  };
}

const forEach = <Made>(statements: Record<Directory, string>, make: (sql: string) => Made) => ({
  everyone: make(statements.everyone),
  shared: make(statements.shared),
  none: make(statements.none),
});

const ADD_NAMES = `INSERT OR IGNORE INTO account_names (name, username, account_id)
  SELECT j.value, a.username, a.id FROM accounts a, json_each(?2) j WHERE a.id = ?1`;
