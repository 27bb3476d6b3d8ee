import { randomBytes } from "node:crypto";
import { type IncomingHook, operations } from "@parley/protocol";
import { createResource } from "../calls/bind.ts";
import { joinedConversation, joinedGroup } from "../domain/access.ts";
import { lockActive } from "../domain/sessions.ts";
import { conflict, forbidden, notFound } from "../rules/failure.ts";
import { hashToken } from "../rules/tokens.ts";
import { type Caller, tokenOf } from "../security/caller.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { ConversationRecord } from "../store/conversations.ts";
import type { IncomingHookRecord } from "../store/incoming-hooks.ts";
import type { ReadTx, WriteTx } from "../store/store.ts";

type Needs = "store" | "audit";
export const incomingHooks = createResource<Needs>();

const MAX_HOOKS_PER_GROUP = 50;

incomingHooks.handle(operations.createIncomingHook, async (context, input) => {
  const { audit, caller, origin } = context;
  const { chat_id, name } = input;
  const { username } = caller.account;
  const id = Bun.randomUUIDv7();
  const secret = randomBytes(32).toString("base64url");
  await audit.write(async (tx, record) => {
    await ownGroup(tx, chat_id, caller);
    await lockActive(tx, caller.account);
    const { length } = await tx.incomingHooks(chat_id);
    if (length >= MAX_HOOKS_PER_GROUP) throw conflict(`the group has ${length} hooks already`);
    const account = await hookAccount(tx, name, caller);
    await tx.insertIncomingHook({
      id,
      secret_hash: hashToken(secret),
      chat: chat_id,
      name,
      creator: username,
      account: account.username,
      created_at: Date.now(),
    });
    const details = { account: username, webhook: id, origin, ...tokenOf(caller) };
    await record("incoming_hook_created", details);
  });
  return { id, url: `${origin.base ?? ""}/hooks/${id}/${secret}` };
});

incomingHooks.handle(operations.getIncomingHooks, ({ store, caller }, { chat_id }) =>
  store.read(async (tx) => {
    await ownGroup(tx, chat_id, caller);
    return { items: (await tx.incomingHooks(chat_id)).map(shown) };
  }),
);

incomingHooks.handle(operations.deleteIncomingHook, async (context, { hook_id }) => {
  const { audit, caller, origin } = context;
  await audit.write(async (tx, record) => {
    const hook = await tx.incomingHook(hook_id);
    if (!hook) throw notFound("hook");
    const { username } = caller.account;
    if (hook.creator !== username) {
      const { admin_id } = await joinedConversation(tx, hook.chat, caller);
      if (admin_id !== caller.account.id) {
        throw forbidden("only its creator or the group's admin may delete a hook");
      }
    }
    await tx.deleteIncomingHook(hook_id);
    const details = { account: username, webhook: hook_id, origin, ...tokenOf(caller) };
    await record("incoming_hook_deleted", details);
  });
});

/** The group, whose admin the caller must be (403). */
async function ownGroup(tx: ReadTx, chatId: string, caller: Caller): Promise<ConversationRecord> {
  const group = await joinedGroup(tx, chatId, caller);
  if (group.admin_id !== caller.account.id) {
    throw forbidden("only the group's admin may manage its hooks");
  }
  return group;
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

const shown = ({
  id,
  name,
  chat,
  creator,
  account,
  created_at,
}: IncomingHookRecord): IncomingHook => ({
  id,
  name,
  chat_id: chat,
  creator,
  account,
  created_at: new Date(created_at).toISOString(),
});
