import { operations } from "@parley/protocol";
import { createResource } from "../calls/bind.ts";
import { joinedConversation } from "../domain/access.ts";
import { announceChatState, chatCleared } from "../domain/chat-states.ts";
import { eraseChat } from "../domain/erasures.ts";
import { conflict } from "../rules/failure.ts";

export const chatStates = createResource<"store" | "erasures">();

const MAX_PINNED = 20;

chatStates.write(operations.setChatState, async (tx, { caller }, input) => {
  const { chat_id, muted_until, ...given } = input;
  const { account } = caller;
  const { id } = await joinedConversation(tx, chat_id, caller);
  const until = muted_until == null ? muted_until : Date.parse(muted_until);
  const change = { ...given, muted_until: until && until <= Date.now() ? null : until };
  if (await tx.setChatState(id, account.id, change)) {
    if (given.pinned && (await tx.pinnedChats(account.id)) > MAX_PINNED) {
      throw conflict(`you have pinned ${MAX_PINNED} conversations`);
    }
    await announceChatState(tx, id, account);
  }
  return tx.conversationView(id, account.id);
});

chatStates.handle(operations.clearChat, async ({ store, erasures, caller }, input) => {
  const { account } = caller;
  await store.write(async (tx) => {
    const conversation = await joinedConversation(tx, input.chat_id, caller);
    if (input.erase) return eraseChat(tx, conversation, account);
    const own_seq = await tx.clearChat(conversation.id, account.id);
    if (own_seq !== null) tx.emit(chatCleared(conversation, account, own_seq));
  });
  if (input.erase) erasures.wake();
});

chatStates.write(operations.markUnread, async (tx, { caller }, { chat_id, seq }) => {
  const { account } = caller;
  const { id } = await joinedConversation(tx, chat_id, caller);
  const from = Math.max(seq, await tx.clearedSeq(id, account.id));
  if (await tx.markUnread(id, account.id, from)) await announceChatState(tx, id, account);
  return { unread_count: await tx.unreadCount(id, account.id) };
});

chatStates.read(operations.getUnread, async (tx, { caller }) => ({
  ...(await tx.unreadTotals(caller.account.id, Date.now())),
  threads: 0,
}));
