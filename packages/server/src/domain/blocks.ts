import { durable } from "../changes/change.ts";
import { conflict, forbidden } from "../rules/failure.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { ConversationRecord } from "../store/conversations.ts";
import type { ReadTx, WriteTx } from "../store/store.ts";

/** Events carry the whole block list: this bounds their size. */
const MAX_BLOCKED = 1000;

/** Blocks a person, or ends the block, and announces the block list to the account's own clients. */
export async function setBlocked(
  tx: WriteTx,
  { id, username }: AccountRecord,
  person: AccountRecord,
  blocked: boolean,
): Promise<void> {
  const own_seq = blocked
    ? await tx.block(id, person.id, Date.now())
    : await tx.unblock(id, person.id);
  if (own_seq === null) return;
  const { usernames } = await tx.blockList(id);
  if (usernames.length > MAX_BLOCKED) throw conflict(`you have blocked ${MAX_BLOCKED} people`);
  const frame = { method: "events.blocksUpdated", params: { usernames }, own_seq } as const;
  tx.emit(durable(frame, { users: [username] }));
  tx.emit({ kind: "presence_changed", username, other: person.username });
}

/** Throws `forbidden` if the inviter has blocked the person whom they want to write to. */
export async function checkNotBlockedBy(
  tx: ReadTx,
  inviter: AccountRecord,
  { id, username }: AccountRecord,
): Promise<void> {
  const [own] = await tx.blockersAmong([inviter.id], [id]);
  if (own !== undefined) {
    throw forbidden(`you have blocked ${username}: unblock them to write`);
  }
}

/** Throws `forbidden` if the owner of the agent has blocked the person. */
export async function checkMayAsk(tx: ReadTx, agent: AccountRecord, person: AccountRecord) {
  const [blocker] = await tx.blockersAmong([agent.owner_id ?? agent.id], [person.id]);
  if (blocker !== undefined) throw forbidden("you cannot ask this agent");
}

/**
 * Throws `forbidden` if one of the people does not let the inviter add them. It does not tell whether
 * they blocked the inviter, or only let people add them whom they know.
 */
export async function checkInvitation(
  tx: ReadTx,
  inviter: AccountRecord,
  invited: readonly AccountRecord[],
): Promise<void> {
  const people = invited.filter(({ kind }) => kind === "human");
  if (people.length === 0) return;
  const refusing = new Set(await tx.refusingInvitation(idsOf(people), inviter.id));
  if (refusing.size > 0) throw forbidden(`you cannot add ${named(people, refusing)}`);
}

/** The number of people who are added to a group and do not know who adds them. */
export async function countStrangers(
  tx: ReadTx,
  inviter: AccountRecord,
  invited: readonly AccountRecord[],
): Promise<number> {
  const people = invited.filter(({ kind }) => kind === "human");
  return people.length === 0 ? 0 : (await tx.strangersAmong(idsOf(people), inviter.id)).length;
}

/** Throws `forbidden` if one of the people left the group for good. */
export async function checkNotGone(
  tx: ReadTx,
  { id }: ConversationRecord,
  invited: readonly AccountRecord[],
): Promise<void> {
  const gone = new Set(await tx.goneForGood(id, idsOf(invited)));
  if (gone.size > 0) throw forbidden(`${named(invited, gone)} left this group for good`);
}

/** The accounts that a block of this sender refers to: a block of a person includes their agents. */
export const blockableIds = ({ id, owner_id }: Pick<AccountRecord, "id" | "owner_id">) =>
  owner_id === null ? [id] : [id, owner_id];

const idsOf = (accounts: readonly AccountRecord[]) => accounts.map(({ id }) => id);

const named = (accounts: readonly AccountRecord[], ids: ReadonlySet<number>) =>
  accounts
    .filter(({ id }) => ids.has(id))
    .map(({ username }) => username)
    .slice(0, 20)
    .join(", ");
