export const INCOMING_HOOK = "id, secret_hash, chat, name, creator, account, created_at";

/** The conversation shows the account of a hook, which is no member. */
export const SHOW_HOOK_ACCOUNT = (chat: string, account: string) => `INSERT INTO former_members
  (conversation_id, account_id)
  SELECT c.id, a.id FROM conversations c, accounts a
  WHERE c.uuid = ${chat} AND a.username = ${account} ON CONFLICT DO NOTHING`;
