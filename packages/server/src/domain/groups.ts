import { conversationShared, groupChanged } from "../changes/change.ts";
import { NOBODY } from "../rules/accounts.ts";
import { isExternal } from "../rules/agents.ts";
import { badField, noAccounts } from "../rules/failure.ts";
import { MOST_PEOPLE } from "../rules/presence.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { ConversationRecord, MemberRecord } from "../store/conversations.ts";
import { type NewChange, SHOWN_PARTICIPANTS } from "../store/group-changes.ts";
import type { NonEmpty } from "../store/non-empty.ts";
import type { WriteTx } from "../store/store.ts";
import { endPendingCalls } from "./tool-calls.ts";
import { stopTurnsOf } from "./turns.ts";

export function checkGroupSize(
  participants: number,
  { group_participants }: { group_participants: number },
  field = "usernames",
): void {
  if (participants > group_participants) {
    throw badField(field, `would make more than ${group_participants} participants`);
  }
}

/** The usernames of those who may have clients: people, and agents whose programs connect. */
export const connectable = (accounts: readonly AccountRecord[]) =>
  accounts
    .filter((account) => account.kind === "human" || isExternal(account))
    .map(({ username }) => username);

/**
 * Keeps accounts from being erased until the unit ends: an erasure leaves the conversations that it can
 * see. Throws (404) if one is erased already.
 */
export async function lockInvited(tx: WriteTx, accounts: readonly AccountRecord[]): Promise<void> {
  const left = new Set((await tx.lockUnerased(accounts.map(({ id }) => id))).map(({ id }) => id));
  const erased = accounts.find(({ id }) => !left.has(id));
  if (erased) throw noAccounts("users", erased.username);
}

/** Announces a conversation to its new participants and subscribes their sockets to it. */
export async function announceNew(
  tx: WriteTx,
  id: number,
  people: readonly AccountRecord[],
  exceptSocket: string | undefined,
): Promise<void> {
  const shared = await tx.sharedConversation(id);
  tx.emit(conversationShared(shared, connectable(people), exceptSocket));
}

/**
 * Stores changes of the group itself and announces them to its participants. Those in `leaving`
 * receive this event as their last one of the group.
 */
export async function announceChanges(
  tx: WriteTx,
  { id, uuid }: ConversationRecord,
  actor: AccountRecord,
  changes: NonEmpty<NewChange>,
  leaving: readonly string[] = [],
): Promise<void> {
  const seq = await tx.changeGroup(id, { actor, changes, at: Date.now() });
  const place = { after: seq - 1, before: seq + 1, limit: 1 };
  const query = { conversationId: id, viewerId: NOBODY, ...place };
  const shared = await tx.sharedConversation(id);
  const params = { ...shared, changes: await tx.conversationChanges(query) };
  const leaves = leaving.length > 0 ? { conversation: uuid, users: leaving } : undefined;
  tx.emit(groupChanged(params, seq, leaves));
}

/** Adds accounts to a group and announces it: to the others the change, to the new ones the group. */
export async function addMembers(
  tx: WriteTx,
  group: ConversationRecord,
  added: readonly AccountRecord[],
  actor: AccountRecord,
  further: readonly NewChange[] = [],
): Promise<void> {
  const ids = added.map(({ id }) => id);
  await lockInvited(tx, added);
  await tx.insertMembers(group.id, ids, Date.now());
  await announceChanges(tx, group, actor, [{ kind: "added", subjects: added }, ...further]);
  await announceNew(tx, group.id, added, undefined);
  const people = group.participant_count - group.agent_count;
  const after = people + peopleAmong(added);
  // The change does not name all of many.
  if (people <= MOST_PEOPLE && (after > MOST_PEOPLE || added.length > SHOWN_PARTICIPANTS)) {
    tx.emit({ kind: "presence_changed", conversation: group.uuid });
  }
}

/**
 * Removes an account from a group, together with its agents, whose turns are stopped and whose tool
 * calls no longer wait. If it was the group's admin, the longest-standing human becomes admin.
 */
export async function removeMember(
  tx: WriteTx,
  group: ConversationRecord,
  members: readonly MemberRecord[],
  { id }: AccountRecord,
  actor: AccountRecord,
): Promise<void> {
  const accounts = members.map(({ account }) => account);
  const leaving = accounts.filter((account) => account.id === id || account.owner_id === id);
  const leavingIds = leaving.map((account) => account.id);
  await tx.deleteMembers(group.id, leavingIds);
  await stopTurnsOf(tx, group.id, (agent) => leavingIds.includes(agent.id));
  await endPendingCalls(tx, group.id, leaving);
  const changes: [NewChange, ...NewChange[]] = [
    { kind: actor.id === id ? "left" : "removed", subjects: leaving },
  ];
  if (group.admin_id === id) {
    const nextAdmin = accounts.find((account) => account.kind === "human" && account.id !== id);
    await tx.setAdmin(group.id, nextAdmin?.id ?? null);
    if (nextAdmin) changes.push({ kind: "admin_changed", subjects: [nextAdmin] });
  }
  await announceChanges(tx, group, actor, changes, connectable(leaving));
  const people = peopleAmong(accounts);
  if (people > MOST_PEOPLE && people - peopleAmong(leaving) <= MOST_PEOPLE) {
    tx.emit({ kind: "presence_changed", conversation: group.uuid });
  }
}

const peopleAmong = (accounts: readonly AccountRecord[]) =>
  accounts.filter(({ kind }) => kind === "human").length;
