import { type Conversation, type InputOf, operations, type Policy } from "@parley/protocol";
import { z } from "zod";
import { createResource } from "../calls/bind.ts";
import { take } from "../calls/throttles.ts";
import { durable } from "../changes/change.ts";
import { formerConversation, joinedConversation, joinedGroup } from "../domain/access.ts";
import {
  checkInvitation,
  checkNotBlockedBy,
  checkNotGone,
  countStrangers,
} from "../domain/blocks.ts";
import { announceChatState } from "../domain/chat-states.ts";
import {
  addMembers,
  announceChanges,
  announceNew,
  checkGroupSize,
  lockInvited,
  removeMember,
} from "../domain/groups.ts";
import { createPages } from "../domain/pagination.ts";
import { changeChatPicture } from "../domain/pictures.ts";
import { checkMayAdd, policyOf, visibleAccounts } from "../domain/policies.ts";
import { lockActive } from "../domain/sessions.ts";
import { publicAccount } from "../rules/accounts.ts";
import { badField, forbidden, noAccounts } from "../rules/failure.ts";
import { mayInvite, mayRemove } from "../rules/permissions.ts";
import type { Caller } from "../security/caller.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { ReadTx } from "../store/store.ts";

export const conversations = createResource<"config" | "throttles">();

const chatPages = createPages(
  z.object({ updated_at: z.int(), id: z.uuid() }),
  ({ id, updated_at }: Conversation) => ({ id, updated_at: Date.parse(updated_at) }),
);

conversations.write(operations.startChat, async (tx, context, input) => {
  const { caller, config, origin } = context;
  const policy = await policyOf(tx, config, caller.account);
  const others = await invitees(tx, input.usernames, caller, policy);
  const [other] = others;
  const direct = isDirect(input, others);
  if (direct && other) {
    // One after another: each conversation takes the pair from the one before.
    if (input.new) await lockActive(tx, caller.account);
    const existing = await tx.directConversation([caller.account.id, other.id]);
    if (existing !== null && !input.new) {
      return tx.conversationView(existing, caller.account.id);
    }
    if (existing !== null) await tx.releasePair(existing);
    await checkNotBlockedBy(tx, caller.account, other);
  }
  await checkMayAdd(tx, policy, caller.account, others);
  await checkInvitation(tx, caller.account, others);
  if (!direct && caller.kind !== "delegate") {
    take(context, "strangers", await countStrangers(tx, caller.account, others));
  }
  checkGroupSize(others.length + 1, config.limits);
  await lockActive(tx, caller.account);
  await lockInvited(tx, others);
  const people = [caller.account, ...others];
  const at = Date.now();
  const uuid = Bun.randomUUIDv7();
  const id = await tx.insertConversation({
    uuid,
    kind: direct ? "direct" : "group",
    title: input.title ?? null,
    created_by: caller.account.id,
    ...(direct && other && { direct: [caller.account.id, other.id] as const }),
    at,
  });
  const ids = people.map((account) => account.id);
  await tx.insertMembers(id, ids, at);
  await announceNew(tx, id, people, origin.socket_id);
  return tx.conversationView(id, caller.account.id);
});

conversations.read(operations.getChats, async (tx, { caller, config }, input) => {
  const { after: place, limit, of } = chatPages(input, config);
  const viewerId = caller.account.id;
  const { archived } = input;
  const last = place && (await tx.conversation(place.id, viewerId));
  if (last === null) throw badField("cursor", "is not a cursor of this list");
  const after = place && last && { updated_at: place.updated_at, id: last.id };
  return of(await tx.chats({ viewerId, archived, after, limit }));
});

conversations.read(operations.getChat, async (tx, { caller }, { chat_id }) => {
  const conversation = await joinedConversation(tx, chat_id, caller);
  return tx.conversationDetail(conversation.id, caller.account.id);
});

conversations.write(operations.setChatTitle, async (tx, { caller }, { chat_id, title }) => {
  const chat = await joinedConversation(tx, chat_id, caller);
  // An agent's direct conversations are with its owner.
  if (chat.kind === "direct" && chat.agent_count === 0) {
    throw badField("chat_id", "is neither a group nor a conversation with an agent");
  }
  if (chat.title !== title) {
    await tx.setTitle(chat.id, title);
    await announceChanges(tx, chat, caller.account, [{ kind: "renamed", title }]);
  }
  return tx.conversationView(chat.id, caller.account.id);
});

conversations.write(operations.setChatPicture, async (tx, { caller }, { chat_id, file_id }) => {
  const group = await joinedGroup(tx, chat_id, caller);
  await changeChatPicture(tx, group, caller, file_id);
  return tx.conversationView(group.id, caller.account.id);
});

conversations.write(operations.addChatMembers, async (tx, context, { chat_id, usernames }) => {
  const { caller, config } = context;
  const group = await joinedGroup(tx, chat_id, caller);
  const policy = await policyOf(tx, config, caller.account);
  const invited = await invitees(tx, usernames, caller, policy);
  const names = invited.map(({ username }) => username);
  const present = new Set(await tx.participantsAmong(group.id, names));
  const added = invited.filter(({ username }) => !present.has(username));
  await checkMayAdd(tx, policy, caller.account, added);
  await checkNotGone(tx, group, added);
  await checkInvitation(tx, caller.account, added);
  if (caller.kind !== "delegate") {
    take(context, "strangers", await countStrangers(tx, caller.account, added));
  }
  checkGroupSize(group.participant_count + added.length, config.limits);
  if (added.length > 0) await addMembers(tx, group, added, caller.account);
  return tx.conversationView(group.id, caller.account.id);
});

conversations.write(operations.removeChatMember, async (tx, { caller }, { chat_id, username }) => {
  const group = await joinedGroup(tx, chat_id, caller);
  const members = await tx.members(group.id);
  const member = members.find(({ account }) => account.username === username);
  if (!member) throw noAccounts("participant", username);
  if (!mayRemove(caller.account, member.account, group)) {
    throw forbidden("only the group's admin may remove others");
  }
  await removeMember(tx, group, members, member.account, caller.account);
});

conversations.write(operations.leaveChat, async (tx, { caller }, { chat_id, final }) => {
  const left = final ? await formerConversation(tx, chat_id, caller) : null;
  if (left) return tx.leaveForGood(left.id, caller.account.id, Date.now());
  const group = await joinedGroup(tx, chat_id, caller);
  if (final) await tx.leaveForGood(group.id, caller.account.id, Date.now());
  await removeMember(tx, group, await tx.members(group.id), caller.account, caller.account);
});

conversations.write(operations.readChat, async (tx, { caller }, { chat_id, seq }) => {
  const { id, ...conversation } = await joinedConversation(tx, chat_id, caller);
  const last_read_seq = Math.min(seq, conversation.seq);
  const before = await tx.markRead(id, caller.account.id, last_read_seq);
  const shown = before?.shown_read_seq ?? before?.last_read_seq ?? 0;
  // After `markUnread`: others were told of that position before, or of a later one.
  if (before && shown > before.last_read_seq) {
    await tx.countChatState(id, caller.account.id);
    await announceChatState(tx, id, caller.account);
  }
  if (before && shown < last_read_seq) {
    const reader = publicAccount(caller.account);
    const params = { conversation_id: chat_id, reader, last_read_seq };
    // People see how far people have read.
    const to = caller.kind === "agent" ? { users: [reader.username] } : { conversation: chat_id };
    tx.emit(durable({ method: "events.chatRead", params }, to));
  }
  return { unread_count: await tx.unreadCount(id, caller.account.id) };
});

/**
 * The named accounts without the caller. Throws if one does not exist (404) or may not be invited (403).
 * To callers who may neither look up strangers nor write to them, strangers do not exist.
 */
async function invitees(tx: ReadTx, usernames: readonly string[], caller: Caller, policy: Policy) {
  const names = [...new Set(usernames)].filter((name) => name !== caller.account.username);
  const named = (await tx.accounts(names)).filter(({ erased_at }) => erased_at === null);
  const existing =
    policy.start_chats === "everyone"
      ? named
      : await visibleAccounts(tx, policy, caller.account, named);
  const found = new Map(existing.map((account) => [account.username, account]));
  const unknown = names.filter((name) => !found.has(name));
  if (unknown.length > 0) throw noAccounts("users", ...unknown.slice(0, 20));
  const accounts = names.map((name) => found.get(name) as AccountRecord);
  const foreign = accounts.find((account) => !mayInvite(caller.account, account));
  if (foreign?.provider === null) throw forbidden(`${foreign.username} only posts`);
  if (foreign) throw forbidden(`only its owner may invite the agent ${foreign.username}`);
  return accounts;
}

/**
 * Whether to start a direct conversation: one other participant, and no title or `kind: "group"`. Only
 * a further one with an agent may have a title.
 */
function isDirect(input: InputOf<"startChat">, others: readonly AccountRecord[]): boolean {
  const { kind, title } = input;
  if (input.new) checkNew(input, others);
  else if (kind === "direct" && title !== undefined) {
    throw badField("title", "is for groups and for new conversations with agents");
  }
  const isPair = others.length === 1;
  if (kind === "direct" && !isPair) {
    throw badField("usernames", "must name one other participant for a direct conversation");
  }
  if (kind === undefined && title === undefined && others.length === 0) {
    throw badField("usernames", "must name at least one other participant");
  }
  return kind === "direct" || (kind !== "group" && title === undefined && isPair);
}

/** Others than owners cannot invite an agent, so it is the caller's. */
function checkNew({ kind }: InputOf<"startChat">, others: readonly AccountRecord[]): void {
  if (kind !== "direct") throw badField("new", 'needs kind: "direct"');
  if (others.length !== 1 || others[0]?.kind !== "agent") {
    throw badField("new", "is for conversations with one of your agents");
  }
}
