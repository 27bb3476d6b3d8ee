import { ACCOUNT } from "../rows.ts";
import type { AccountQuery, AccountRecord, ReadTx, WriteTx } from "../store.ts";
import type { Connection } from "./connection.ts";

type Reads = Pick<ReadTx, "account" | "accounts" | "credentials" | "listAccounts">;
type Writes = Pick<WriteTx, "insertAccount" | "setDisplayName" | "setPassword">;

export function accountReads(db: Connection): Reads {
  const byUsername = db.query<AccountRecord>(
    `SELECT ${ACCOUNT} FROM accounts a WHERE a.username = ?`,
  );
  const byUsernames = db.query<AccountRecord>(
    `SELECT ${ACCOUNT} FROM json_each(?) j JOIN accounts a ON a.username = j.value`,
  );
  const withPassword = db.query<AccountRecord & { password_hash: string | null }>(
    `SELECT ${ACCOUNT}, a.password_hash FROM accounts a WHERE a.username = ?`,
  );
  const VISIBLE = "(a.kind = 'human' OR a.owner_id = ?1) AND a.username > ?2";
  const list = db.query<AccountRecord>(
    `SELECT ${ACCOUNT} FROM accounts a WHERE ${VISIBLE}
       AND (?3 IS NULL OR a.username LIKE ?3 ESCAPE '\\' OR a.display_name LIKE ?3 ESCAPE '\\'
            OR a.display_name LIKE '% ' || ?3 ESCAPE '\\')
     ORDER BY a.username LIMIT ?4`,
  );
  const listNamed = db.query<AccountRecord>(
    `SELECT ${ACCOUNT} FROM json_each(?3) j JOIN accounts a ON a.username = j.value
     WHERE ${VISIBLE} GROUP BY a.id ORDER BY a.username LIMIT ?4`,
  );
  return {
    account: (username) => byUsername.get(username),
    accounts: (usernames) => byUsernames.all(JSON.stringify(usernames)),
    credentials: (username) => {
      const row = withPassword.get(username);
      if (!row) return null;
      const { password_hash, ...account } = row;
      return { account, password_hash };
    },
    listAccounts: ({ viewerId, after = "", usernames, query, limit }: AccountQuery) => {
      if (usernames) return listNamed.all(viewerId, after, JSON.stringify(usernames), limit);
      const prefix = query ? `${query.replace(/[\\%_]/g, "\\$&")}%` : null;
      return list.all(viewerId, after, prefix, limit);
    },
  };
}

export function accountWrites(db: Connection): Writes {
  const insert = db.change<AccountRecord>(
    `INSERT INTO accounts (username, kind, display_name, password_hash, owner_id, provider, created_at)
     VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (username) DO NOTHING
     RETURNING id, username, kind, display_name, owner_id, provider`,
  );
  const rename = db.change("UPDATE accounts SET display_name = ?2 WHERE id = ?1");
  const password = db.change("UPDATE accounts SET password_hash = ?2 WHERE id = ?1");
  return {
    insertAccount: (account) =>
      insert.get(
        account.username,
        account.kind,
        account.display_name,
        account.password_hash ?? null,
        account.owner_id ?? null,
        account.provider ?? null,
        account.at,
      ),
    setDisplayName: (id, displayName) => void rename.run(id, displayName),
    setPassword: (id, hash) => void password.run(id, hash),
  };
}
