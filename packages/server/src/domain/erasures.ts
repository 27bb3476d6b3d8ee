import { accountSuspended } from "../changes/change.ts";
import { conflict } from "../rules/failure.ts";
import type { AuditDetails, Recorder } from "../security/audit-log.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { ConversationRecord, MemberRecord } from "../store/conversations.ts";
import type { ErasureRecord } from "../store/erasures.ts";
import { SCANNED_IDS } from "../store/message-records.ts";
import type { ReadTx, WriteTx } from "../store/store.ts";
import { changeDisplayName } from "./accounts.ts";
import { chatCleared } from "./chat-states.ts";
import {
  batches,
  type DeletionProgress,
  removeAllIn,
  removeInBatches,
  type Units,
} from "./deletions.ts";
import { announceChanges, connectable, removeMember } from "./groups.ts";
import { closeAgentSockets, endSessions } from "./sessions.ts";
import { stopAgentsOf } from "./suspension.ts";
import { endPendingCalls } from "./tool-calls.ts";
import { stopTurnsOf } from "./turns.ts";

const ERASED_NAME = "Deleted account";

/**
 * Erases an account and those that belong to it, and ends its sessions and sockets, on every node. Its
 * conversations and messages follow in `finishErasure`. Does nothing if it is erased already.
 */
export async function eraseAccount(
  tx: WriteTx,
  record: Recorder,
  account: AccountRecord,
  { messages, details }: { messages: boolean; details: AuditDetails },
): Promise<void> {
  const at = Date.now();
  const owned = await tx.ownedAccounts(account.id);
  const sessions_ended = await endSessions(tx, account);
  if (!(await tx.eraseAccount(account, { messages, at }))) return;
  const [avatar] = await tx.avatars([account.id]);
  if (avatar) await tx.setAvatar(account.id, null, at);
  for (const each of [account, ...owned]) {
    await changeDisplayName(tx, { ...each, erased_at: at }, ERASED_NAME, account.username);
  }
  // Calls that authenticated just before may still open sockets: sockets close by username.
  tx.emit(accountSuspended(account.username));
  closeAgentSockets(tx, owned);
  await record("account_erased", { ...details, account: account.username, sessions_ended });
}

/** Erases an agent, while its owner stays. Call `finishErasure` after the commit. */
export async function eraseAgent(tx: WriteTx, agent: AccountRecord, owner: AccountRecord) {
  const at = Date.now();
  if (!(await tx.eraseAccount(agent, { messages: false, at }))) return;
  await changeDisplayName(tx, { ...agent, erased_at: at }, ERASED_NAME, owner.username);
  closeAgentSockets(tx, [agent]);
}

/**
 * Does what is left of an erasure: stops agents, leaves groups, closes direct conversations, empties
 * conversations that nobody else reads, erases what tools returned, and deletes messages if that was
 * asked for. Each step is a small unit of work, and a step that is done has no effect when it is done
 * again: after a crash it starts over.
 */
export async function finishErasure(
  store: Units,
  { account, messages }: ErasureRecord,
  progress: DeletionProgress = () => {},
): Promise<void> {
  await stopAgentsOf(store, account);
  for (const { uuid } of await store.read((tx) => tx.counters(account.id))) {
    await leaveConversation(store, uuid, account, progress);
    await progress(0);
  }
  await eraseToolCalls(store, account, progress);
  if (messages) await removeSent(store, account, progress);
  await store.write((tx) => tx.finishErasure(account.id));
}

/**
 * Erases a conversation in which the account is the only person (409 otherwise), for everybody: stops its
 * turns and calls, and announces it to the account. Its messages follow in `finishChatErasure`.
 */
export async function eraseChat(
  tx: WriteTx,
  conversation: ConversationRecord,
  account: AccountRecord,
): Promise<void> {
  const members = (await tx.members(conversation.id)).map((member) => member.account);
  const isOtherPerson = ({ kind, id, erased_at }: AccountRecord) =>
    kind === "human" && id !== account.id && erased_at === null;
  if (members.some(isOtherPerson)) {
    throw conflict("other people take part in this conversation: it can only be cleared");
  }
  await stopTurnsOf(tx, conversation.id, () => true);
  await endPendingCalls(tx, conversation.id, members);
  const programs = connectable(members.filter(({ kind }) => kind === "agent"));
  const subjects = members.filter(({ username }) => programs.includes(username));
  if (programs.length > 0) {
    await tx.deleteMembers(
      conversation.id,
      subjects.map(({ id }) => id),
    );
    await announceChanges(tx, conversation, account, [{ kind: "removed", subjects }], programs);
  }
  if (conversation.picture_id !== null) {
    await tx.setChatPicture(conversation.id, null, Date.now());
  }
  await tx.eraseChat(conversation, Date.now());
  const own_seq = await tx.countOwnChange(account.id);
  tx.emit(chatCleared(conversation, account, own_seq, true));
}

/** Deletes the messages of an erased conversation. Has no effect on those that are deleted already. */
export async function finishChatErasure(
  store: Units,
  { id, uuid }: Pick<ConversationRecord, "id" | "uuid">,
  progress: DeletionProgress = () => {},
): Promise<void> {
  await removeAllIn(store, { id, uuid, agent_count: 0 }, progress);
  await store.write((tx) => tx.finishChatErasure(id));
}

async function leaveConversation(
  store: Units,
  uuid: string,
  account: AccountRecord,
  progress: DeletionProgress,
): Promise<void> {
  const unread = await store.read((tx) => withoutReaders(tx, uuid, account));
  if (unread) await removeAllIn(store, unread, progress);
  await store.write(async (tx) => {
    const conversation = await tx.conversation(uuid, account.id);
    if (!conversation?.joined || conversation.closed_at !== null) return;
    if (conversation.kind === "direct") {
      await stopTurnsOf(tx, conversation.id, ({ id }) => id === account.id);
      await endPendingCalls(tx, conversation.id, [account]);
      return tx.closeConversation(conversation.id, Date.now());
    }
    if (unread && conversation.picture_id !== null) {
      await tx.setChatPicture(conversation.id, null, Date.now());
    }
    return removeMember(tx, conversation, await tx.members(conversation.id), account, account);
  });
}

/** The conversation, if no other person takes part in it; otherwise null. */
async function withoutReaders(tx: ReadTx, uuid: string, { id }: AccountRecord) {
  const conversation = await tx.conversation(uuid, id);
  if (!conversation) return null;
  const isReader = ({ account }: MemberRecord) =>
    account.kind === "human" && account.id !== id && account.erased_at === null;
  return (await tx.members(conversation.id)).some(isReader) ? null : conversation;
}

/** Deletes what only the owner saw of the calls of their agents. No further call is made by now. */
async function eraseToolCalls(store: Units, { id }: AccountRecord, progress: DeletionProgress) {
  const calls = await store.read((tx) => tx.toolCallsToErase(id));
  for (const [conversation, uuids] of batches(calls, (each) => each.conversation_id)) {
    await store.write((tx) => tx.eraseToolCalls(conversation, uuids));
    await progress(0);
  }
}

/** Deletes all messages that the account, or one that belongs to it, has sent. */
async function removeSent(store: Units, { id }: AccountRecord, progress: DeletionProgress) {
  const owned = await store.read((tx) => tx.ownedAccounts(id));
  const senderIds = [id, ...owned.map((each) => each.id)];
  const last = await store.read((tx) => tx.lastMessageId());
  for (let after = 0; after < last; after += SCANNED_IDS) {
    const range = { after, upTo: after + SCANNED_IDS };
    const found = await store.read((tx) => tx.scanMessages(range, { senderIds }));
    await removeInBatches(store, found, progress);
    await progress(0);
  }
}
