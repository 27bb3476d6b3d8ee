export const INCOMING_HOOK = "id, secret_hash, chat, name, creator, account, created_at";

/** The conversation shows the account of a hook, which is no member. */
export const SHOW_HOOK_ACCOUNT = `INSERT INTO former_members (conversation_id, account_id)
  SELECT c.id, a.id FROM conversations c, accounts a
  WHERE c.uuid = $1 AND a.username = $2 ON CONFLICT DO NOTHING`;
