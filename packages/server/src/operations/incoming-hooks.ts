import { randomBytes } from "node:crypto";
import { type IncomingHook, operations } from "@parley/protocol";
import { createResource } from "../calls/bind.ts";
import { joinedConversation, joinedGroup } from "../domain/access.ts";
import { lockActive } from "../domain/sessions.ts";
import { conflict, forbidden, notFound } from "../rules/failure.ts";
import { iso } from "../rules/time.ts";
import { hashToken } from "../rules/tokens.ts";
import type { Caller } from "../security/caller.ts";
import { ownDetails } from "../security/own-password.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { IncomingHookRecord } from "../store/incoming-hooks.ts";
import type { ReadTx, WriteTx } from "../store/store.ts";

export const incomingHooks = createResource<never>();

const MAX_HOOKS_PER_GROUP = 50;

incomingHooks.audited(operations.createIncomingHook, async (tx, record, context, input) => {
  const { caller, origin } = context;
  const { chat_id, name } = input;
  await checkAdmin(tx, chat_id, caller);
  await lockActive(tx, caller.account);
  const { length } = await tx.incomingHooks(chat_id);
  if (length >= MAX_HOOKS_PER_GROUP) throw conflict(`the group has ${length} hooks already`);
  const id = Bun.randomUUIDv7();
  const secret = randomBytes(32).toString("base64url");
  const account = await hookAccount(tx, name, caller);
  await tx.insertIncomingHook({
    id,
    secret_hash: hashToken(secret),
    chat: chat_id,
    name,
    creator: caller.account.username,
    account: account.username,
    created_at: Date.now(),
  });
  await record("incoming_hook_created", { ...ownDetails(context), webhook: id });
  return { id, url: `${origin.base ?? ""}/hooks/${id}/${secret}` };
});

incomingHooks.read(operations.getIncomingHooks, async (tx, { caller }, { chat_id }) => {
  await checkAdmin(tx, chat_id, caller);
  return { items: (await tx.incomingHooks(chat_id)).map(shown) };
});

incomingHooks.audited(operations.deleteIncomingHook, async (tx, record, context, { hook_id }) => {
  const { caller } = context;
  const hook = await tx.incomingHook(hook_id);
  if (!hook) throw notFound("hook");
  if (hook.creator !== caller.account.username) {
    const { admin_id } = await joinedConversation(tx, hook.chat, caller);
    if (admin_id !== caller.account.id) {
      throw forbidden("only its creator or the group's admin may delete a hook");
    }
  }
  await tx.deleteIncomingHook(hook_id);
  await record("incoming_hook_deleted", { ...ownDetails(context), webhook: hook_id });
});

async function checkAdmin(tx: ReadTx, chatId: string, caller: Caller): Promise<void> {
  const { admin_id } = await joinedGroup(tx, chatId, caller);
  if (admin_id === caller.account.id) return;
  throw forbidden("only the group's admin may manage its hooks");
}

/** The account that a hook posts as. All hooks of a person with the same name share one. */
async function hookAccount(tx: WriteTx, name: string, { account }: Caller): Promise<AccountRecord> {
  const username = `${account.username}:${name}`;
  const made = await tx.insertAccount({
    username,
    kind: "agent",
    display_name: name,
    owner_id: account.id,
    at: Date.now(),
  });
  const found = made ?? (await tx.account(username));
  if (found?.provider !== null) throw conflict(`${username} is the name of an agent`);
  return found;
}

const shown = (hook: IncomingHookRecord): IncomingHook => ({
  id: hook.id,
  name: hook.name,
  chat_id: hook.chat,
  creator: hook.creator,
  account: hook.account,
  created_at: iso(hook.created_at),
});
