import type { AccountReads, AccountRecord, AccountWrites, FoundAccount } from "../accounts.ts";
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
import { incrementOwnCounter } from "./own-counter.ts";
import { list, type Methods, type Unit } from "./unit.ts";

export const accountReads: Methods<keyof AccountReads> = {
  renamedSince: async (unit, viewerId, since) => {
    const [counter, rows] = await Promise.all([
      unit.get<{ seq: number }>("SELECT seq FROM name_counter WHERE id = 1"),
      since === undefined ? [] : unit.all<RenamedRow>(RENAMED, viewerId, since),
    ]);
    return toRenamed(rows, counter?.seq ?? 0);
  },
  nameAudience: async (unit, accountId) => {
    const [conversations, readers] = await Promise.all([
      unit.all<{ uuid: string }>(SHOWING_CONVERSATIONS, accountId),
      unit.all<{ username: string }>(NAME_READERS, accountId),
    ]);
    return {
      conversations: conversations.map(({ uuid }) => uuid),
      usernames: readers.map(({ username }) => username),
    };
  },
  account: (unit, username) =>
    unit.get<AccountRecord>(`SELECT ${ACCOUNT} FROM accounts a WHERE a.username = $1`, username),
  accountByExternalId: (unit, externalId) =>
    unit.get<AccountRecord>(
      `SELECT ${ACCOUNT} FROM accounts a WHERE a.external_id = $1`,
      externalId,
    ),
  productAccounts: async (unit, externalIds) => {
    const rows = await unit.all<ProductRow>(
      `SELECT ${ACCOUNT}, a.external_id, a.metadata, a.policy
       FROM jsonb_array_elements_text($1::jsonb) AS j(external_id)
       JOIN accounts a ON a.external_id = j.external_id`,
      externalIds,
    );
    return rows.map(toProductAccount);
  },
  accounts: (unit, usernames) =>
    unit.all<AccountRecord>(
      `SELECT ${ACCOUNT} FROM jsonb_array_elements_text($1::jsonb) AS j(username)
       JOIN accounts a ON a.username = j.username`,
      usernames,
    ),
  credentials: async (unit, username) => {
    const row = await unit.get<CredentialsRow>(
      `SELECT ${ACCOUNT}, a.password_hash FROM accounts a WHERE a.username = $1`,
      username,
    );
    return row && toCredentials(row);
  },
  sharingAccounts: async (unit, viewerId, ids) => {
    const rows = await unit.all<{ id: number }>(
      `SELECT a.id FROM accounts a WHERE a.id = ANY($2::bigint[]) AND ${IS_MET}`,
      viewerId,
      list(ids),
    );
    return rows.map(({ id }) => id);
  },
  policySource: async (unit, id) => toPolicySource(await unit.get<PolicyRow>(POLICY_SOURCE, id)),
  listAccounts: (unit, { viewerId, directory = "everyone", after = "", usernames, limit }) => {
    if (usernames) {
      const isMet = directory === "everyone" ? "" : `AND ${IS_MET}`;
      return unit.all<AccountRecord>(
        `SELECT ${ACCOUNT} FROM accounts a
         WHERE a.username IN (SELECT jsonb_array_elements_text($3::jsonb)) AND ${IS_LISTED} ${isMet}
         ORDER BY a.username LIMIT $4`,
        viewerId,
        after,
        usernames,
        limit,
      );
    }
    return unit.all<AccountRecord>(LISTS[directory], viewerId, after, limit);
  },
  findAccounts: async (unit, query) => {
    const range = nameRange(query);
    if (!range) return [];
    const { prefix, after, end } = range;
    const { viewerId, directory = "everyone" } = query;
    const found = await unit.all<FoundAccount>(
      SEARCHES[directory],
      after.name,
      after.username,
      end,
      prefix,
      query.limit,
      ...(directory === "everyone" ? [] : [viewerId]),
    );
    const agents = await unit.all<AccountRecord>(OWN_AGENTS, viewerId);
    return withAgents(found, agents, range, query.limit);
  },
};

export const accountWrites: Methods<keyof AccountWrites> = {
  lockCredentials: async (unit, id) => {
    await unit.ownRow("accounts", id);
    const row = await unit.get<CredentialsRow>(
      `SELECT ${ACCOUNT}, a.password_hash FROM accounts a WHERE a.id = $1`,
      id,
    );
    if (!row) throw new Error(`account ${id} is missing`);
    return toCredentials(row);
  },
  lockUnerased: async (unit, ids) => {
    await Promise.all(ids.map((id) => unit.ownRow("accounts", id)));
    return unit.all<AccountRecord>(
      `SELECT ${ACCOUNT} FROM accounts a WHERE a.id = ANY($1::bigint[]) AND a.erased_at IS NULL`,
      list(ids),
    );
  },
  insertAccount: async (unit, account) => {
    const [row] = await unit.write<AccountRecord>(
      INSERT_ACCOUNT,
      account.username,
      account.kind,
      account.display_name,
      account.password_hash ?? null,
      account.owner_id ?? null,
      account.provider ?? null,
      account.external_id ?? null,
      account.metadata ?? null,
      account.policy ?? null,
      account.at,
    );
    if (row) await index(unit, row);
    return row ?? null;
  },
  insertAccounts: async (unit, accounts) => {
    if (accounts.length === 0) return [];
    const made = await unit.write<AccountRecord>(INSERT_ALL, accounts);
    const people = made.filter(isIndexed);
    if (people.length > 0) await unit.write(ADD_NAMES, people.flatMap(namesOf));
    return [...made];
  },
  setPolicy: async (unit, id, policy) => {
    await unit.ownRow("accounts", id);
    await unit.write("UPDATE accounts SET policy = $2::jsonb WHERE id = $1", id, policy);
  },
  setMetadata: async (unit, id, metadata) => {
    await unit.ownRow("accounts", id);
    await unit.write("UPDATE accounts SET metadata = $2::jsonb WHERE id = $1", id, metadata);
  },
  setDisplayName: async (unit, id, displayName) => {
    // A row that does not exist cannot be owned: the unit would wait for it.
    const found = await unit.get("SELECT 1 FROM accounts WHERE id = $1", id);
    if (!found) throw new Error(`account ${id} is missing`);
    // A unit that owns the counter commits before the next one increments it: versions become visible
    // in their order.
    await unit.ownRow("accounts", id);
    await unit.ownRow("name_counter", 1);
    const [renamed] = await unit.write<AccountRecord>(
      `WITH counted AS (${COUNT_NAME})
       UPDATE accounts a SET display_name = $2, version = counted.seq FROM counted WHERE a.id = $1
       RETURNING ${ACCOUNT}`,
      id,
      displayName,
    );
    if (!renamed) throw new Error(`account ${id} is missing`);
    await unit.write("DELETE FROM account_names WHERE account_id = $1", id);
    await index(unit, renamed);
    return renamed.version;
  },
  countOwnChange: incrementOwnCounter,
  setPassword: async (unit, id, hash) => {
    await unit.ownRow("accounts", id);
    await unit.write("UPDATE accounts SET password_hash = $2 WHERE id = $1", id, hash);
  },
};

const LISTS = listAccounts("JOIN");
const SEARCHES = findAccounts("JOIN");

const INSERT_ALL = `INSERT INTO accounts AS a
    (username, kind, display_name, password_hash, owner_id, provider, external_id, metadata, policy,
      created_at)
  SELECT g.username, g.kind, g.display_name, g.password_hash, g.owner_id, g.provider, g.external_id,
    g.metadata, g.policy, g.at
  FROM jsonb_to_recordset($1::jsonb) AS g (username text, kind text, display_name text,
    password_hash text, owner_id bigint, provider text, external_id text, metadata jsonb, policy jsonb, at bigint)
  ORDER BY g.username ON CONFLICT DO NOTHING RETURNING ${ACCOUNT}`;

const ADD_NAMES = `INSERT INTO account_names (name, username, account_id)
  SELECT g.name, g.username, g.account_id
  FROM jsonb_to_recordset($1::jsonb) AS g (name text, username text, account_id bigint)
  ON CONFLICT DO NOTHING`;

async function index(unit: Unit, account: AccountRecord): Promise<void> {
  if (isIndexed(account)) await unit.write(ADD_NAMES, namesOf(account));
}

const namesOf = ({ id, username, display_name }: Indexed) =>
  accountNames(username, display_name).map((name) => ({ name, username, account_id: id }));

type Indexed = Pick<AccountRecord, "id" | "username" | "display_name">;
