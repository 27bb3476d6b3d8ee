import type {
  IncomingHookReads,
  IncomingHookRecord,
  IncomingHookWrites,
} from "../incoming-hooks.ts";
import { INCOMING_HOOK, SHOW_HOOK_ACCOUNT } from "../shared/incoming-hooks.ts";
import type { Connection } from "./connection.ts";

export function incomingHookReads(db: Connection): IncomingHookReads {
  const byId = db.query<IncomingHookRecord>(
    `SELECT ${INCOMING_HOOK} FROM incoming_hooks WHERE id = ?`,
  );
  const byChat = db.query<IncomingHookRecord>(
    `SELECT ${INCOMING_HOOK} FROM incoming_hooks WHERE chat = ? ORDER BY created_at, id`,
  );
  const byCreator = db.query<IncomingHookRecord>(
    `SELECT ${INCOMING_HOOK} FROM incoming_hooks WHERE creator = ? ORDER BY created_at, id`,
  );
  return {
    incomingHook: (id) => byId.get(id),
    incomingHooks: (chat) => byChat.all(chat),
    incomingHooksBy: (creator) => byCreator.all(creator),
  };
}

export function incomingHookWrites(db: Connection): IncomingHookWrites {
  const insert = db.change(
    `INSERT INTO incoming_hooks (${INCOMING_HOOK}) VALUES (?, ?, ?, ?, ?, ?, ?)`,
  );
  const show = db.change(SHOW_HOOK_ACCOUNT);
  const remove = db.change("DELETE FROM incoming_hooks WHERE id = ?");
  return {
    insertIncomingHook: ({ id, secret_hash, chat, name, creator, account, created_at }) => {
      insert.run(id, secret_hash, chat, name, creator, account, created_at);
      show.run(chat, account);
    },
    deleteIncomingHook: (id) => void remove.run(id),
  };
}
