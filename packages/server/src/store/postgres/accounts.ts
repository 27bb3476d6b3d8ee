import { ACCOUNT } from "../rows.ts";
import type { AccountRecord } from "../store.ts";
import type { Methods } from "./unit.ts";

const VISIBLE = "(a.kind = 'human' OR a.owner_id = $1) AND a.username > $2";

export const accountReads: Methods<"account" | "accounts" | "credentials" | "listAccounts"> = {
  account: (unit, username) =>
    unit.get<AccountRecord>(`SELECT ${ACCOUNT} FROM accounts a WHERE a.username = $1`, username),
  accounts: (unit, usernames) =>
    unit.all<AccountRecord>(
      `SELECT ${ACCOUNT} FROM jsonb_array_elements_text($1::jsonb) AS j(username)
       JOIN accounts a ON a.username = j.username`,
      usernames,
    ),
  credentials: async (unit, username) => {
    const row = await unit.get<AccountRecord & { password_hash: string | null }>(
      `SELECT ${ACCOUNT}, a.password_hash FROM accounts a WHERE a.username = $1`,
      username,
    );
    if (!row) return null;
    const { password_hash, ...account } = row;
    return { account, password_hash };
  },
  listAccounts: (unit, { viewerId, after = "", usernames, query, limit }) => {
    if (usernames) {
      return unit.all<AccountRecord>(
        `SELECT ${ACCOUNT} FROM accounts a
         WHERE a.username IN (SELECT jsonb_array_elements_text($3::jsonb)) AND ${VISIBLE}
         ORDER BY a.username LIMIT $4`,
        viewerId,
        after,
        usernames,
        limit,
      );
    }
    const prefix = query ? `${query.replace(/[\\%_]/g, "\\$&")}%` : null;
    return unit.all<AccountRecord>(
      `SELECT ${ACCOUNT} FROM accounts a WHERE ${VISIBLE}
         AND ($3::text IS NULL OR a.username ILIKE $3 OR a.display_name ILIKE $3
              OR a.display_name ILIKE '% ' || $3)
       ORDER BY a.username LIMIT $4`,
      viewerId,
      after,
      prefix,
      limit,
    );
  },
};

export const accountWrites: Methods<"insertAccount" | "setDisplayName" | "setPassword"> = {
  insertAccount: async (unit, account) => {
    const [row] = await unit.change<AccountRecord>(
      `INSERT INTO accounts AS a
         (username, kind, display_name, password_hash, owner_id, provider, created_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING RETURNING ${ACCOUNT}`,
      account.username,
      account.kind,
      account.display_name,
      account.password_hash ?? null,
      account.owner_id ?? null,
      account.provider ?? null,
      account.at,
    );
    return row ?? null;
  },
  setDisplayName: async (unit, id, displayName) => {
    await unit.change("UPDATE accounts SET display_name = $2 WHERE id = $1", id, displayName);
  },
  setPassword: async (unit, id, hash) => {
    await unit.change("UPDATE accounts SET password_hash = $2 WHERE id = $1", id, hash);
  },
};
