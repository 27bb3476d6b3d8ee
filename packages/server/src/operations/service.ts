import { operations } from "@parley/protocol";
import { createResource } from "../calls/bind.ts";
import { checkWritable } from "../domain/access.ts";
import { retryOnConflict } from "../domain/accounts.ts";
import { checkTimes, importMessages } from "../domain/imported-messages.ts";
import { upsertChats } from "../domain/product-chats.ts";
import { endSessions, openSession } from "../domain/sessions.ts";
import { checkRepetition, productUser, upsertUsers } from "../domain/users.ts";
import { NOBODY } from "../rules/accounts.ts";
import { notFound } from "../rules/failure.ts";

export const service = createResource<"config" | "store" | "vault">();

const DEFAULT_EXPIRES_IN_S = 60 * 60;

service.handle(operations.upsertUsers, async ({ store, config }, { users }) => {
  checkRepetition("users", users);
  const items = await retryOnConflict(() => store.write((tx) => upsertUsers(tx, users, config)));
  return { items };
});

service.write(operations.upsertChats, async (tx, { config }, { chats }) => {
  checkRepetition("chats", chats);
  return { items: await upsertChats(tx, chats, config.limits) };
});

service.audited(operations.issueToken, async (tx, record, context, input) => {
  const { caller, origin } = context;
  const { expires_in = DEFAULT_EXPIRES_IN_S, ...person } = input;

  const account = await productUser(tx, person);
  const fixedEnd = Date.now() + expires_in * 1000;
  const { signedIn, session_id } = await openSession(tx, account, context, { fixedEnd });
  const details = { account: account.username, service_key: caller.key.name, origin, session_id };
  await record("sign_in", { ...details, method: "service_key" });
  return signedIn;
});

service.audited(operations.revokeTokens, async (tx, record, context, person) => {
  const { caller, origin } = context;
  const account = await productUser(tx, person);
  const sessions_ended = await endSessions(tx, account);
  const details = { account: account.username, service_key: caller.key.name, origin };
  await record("session_ended", { ...details, reason: "tokens_revoked", sessions_ended });
  return { sessions_ended };
});

service.audited(operations.importMessages, async (tx, record, { caller, origin }, input) => {
  const { chat_id, messages } = input;
  checkTimes(messages);
  const conversation = await tx.conversation(chat_id, NOBODY);
  if (!conversation) throw notFound("conversation");
  checkWritable(conversation);
  const results = await importMessages(tx, conversation, messages);
  const imported = results.filter(({ inserted }) => inserted !== null).length;
  const details = { service_key: caller.key.name, origin, conversation: chat_id };
  if (imported > 0) await record("messages_imported", { ...details, messages: imported });
  const items = results.map(({ uuid, inserted }, place) => ({
    client_msg_id: messages[place]?.client_msg_id ?? "",
    message_id: uuid,
    created: inserted !== null,
  }));
  return { items };
});
