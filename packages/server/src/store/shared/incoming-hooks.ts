export const INCOMING_HOOK = "id, secret_hash, chat, name, creator, account, created_at";
