import type {
  IncomingHookReads,
  IncomingHookRecord,
  IncomingHookWrites,
} from "../incoming-hooks.ts";
import { INCOMING_HOOK, SHOW_HOOK_ACCOUNT } from "../shared/incoming-hooks.ts";
import type { Methods } from "./unit.ts";

export const incomingHookReads: Methods<keyof IncomingHookReads> = {
  incomingHook: (unit, id) =>
    unit.get<IncomingHookRecord>(`SELECT ${INCOMING_HOOK} FROM incoming_hooks WHERE id = $1`, id),
  incomingHooks: (unit, chat) =>
    unit.all<IncomingHookRecord>(
      `SELECT ${INCOMING_HOOK} FROM incoming_hooks WHERE chat = $1 ORDER BY created_at, id`,
      chat,
    ),
  incomingHooksBy: (unit, creator) =>
    unit.all<IncomingHookRecord>(
      `SELECT ${INCOMING_HOOK} FROM incoming_hooks WHERE creator = $1 ORDER BY created_at, id`,
      creator,
    ),
};

export const incomingHookWrites: Methods<keyof IncomingHookWrites> = {
  insertIncomingHook: async (unit, hook) => {
    await unit.write(
      `INSERT INTO incoming_hooks (${INCOMING_HOOK}) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
      hook.id,
      hook.secret_hash,
      hook.chat,
      hook.name,
      hook.creator,
      hook.account,
      hook.created_at,
    );
    await unit.write(SHOW_HOOK_ACCOUNT, hook.chat, hook.account);
  },
  deleteIncomingHook: async (unit, id) => {
    await unit.write("DELETE FROM incoming_hooks WHERE id = $1", id);
  },
};
