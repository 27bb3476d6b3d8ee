import type { Account } from "@parley/protocol";
import { counted, uncounted } from "../changes/change.ts";
import { badField } from "../rules/failure.ts";
import type {
  AccountRecord,
  ConversationRecord,
  MemberRecord,
  NewChange,
  WriteTx,
} from "../store/store.ts";
import { publicAccount } from "./accounts.ts";
import { stopTurns } from "./turns.ts";

export function checkSize(
  participants: number,
  { group_participants }: { group_participants: number },
  field = "usernames",
): void {
  if (participants > group_participants) {
    throw badField(field, `would make more than ${group_participants} participants`);
  }
}

const humansAmong = (accounts: readonly AccountRecord[]) =>
  accounts.filter(({ kind }) => kind === "human").map(({ username }) => username);

/** Tells a conversation's first or new people of it, and lets their sockets hear it. */
export async function announceNew(
  tx: WriteTx,
  id: number,
  uuid: string,
  people: readonly AccountRecord[],
  exceptSocket: string | undefined,
): Promise<void> {
  const shared = await tx.sharedConversation(id);
  const users = humansAmong(people);
  tx.emit({
    frame: {
      method: "events.conversationNew",
      params: shared,
      at: { conversation_id: uuid, seq: shared.seq },
    },
    to: { users },
    joins: { conversation: uuid, users },
    exceptSocket,
  });
}

/** Stores changes of the group itself and tells those who heard the group before them. */
export async function announceChanges(
  tx: WriteTx,
  { id, uuid }: ConversationRecord,
  actor: AccountRecord,
  changes: readonly NewChange[],
  leaving: readonly string[] = [],
): Promise<void> {
  const seq = await tx.changeGroup(id, { actor, changes, at: Date.now() });
  const query = { conversationId: id, after: seq - 1, before: seq + 1, limit: 1 };
  const params = {
    ...(await tx.sharedConversation(id)),
    changes: await tx.conversationChanges(query),
  };
  tx.emit({
    ...counted("events.conversationUpdated", params, uuid, seq),
    ...(leaving.length > 0 && { leaves: { conversation: uuid, users: leaving } }),
  });
}

export async function join(
  tx: WriteTx,
  group: ConversationRecord,
  added: readonly AccountRecord[],
  actor: AccountRecord,
  further: readonly NewChange[] = [],
): Promise<void> {
  const ids = added.map(({ id }) => id);
  await tx.insertMembers(group.id, ids, Date.now());
  await announceChanges(tx, group, actor, [{ kind: "added", subjects: added }, ...further]);
  await announceNew(tx, group.id, group.uuid, added, undefined);
}

/** A person who goes takes their agents along, in mid-sentence if need be; an admin passes the role on. */
export async function part(
  tx: WriteTx,
  group: ConversationRecord,
  members: readonly MemberRecord[],
  { id }: AccountRecord,
  actor: AccountRecord,
): Promise<void> {
  const accounts = members.map(({ account }) => account);
  const going = accounts.filter((account) => account.id === id || account.owner_id === id);
  await tx.deleteMembers(
    group.id,
    going.map((account) => account.id),
  );
  const gone = new Set(going.map((account) => account.id));
  const turns = await tx.openTurns(group.id);
  await stopTurns(
    tx,
    turns.filter(({ agent }) => gone.has(agent.id)),
  );
  const changes: NewChange[] = [{ kind: actor.id === id ? "left" : "removed", subjects: going }];
  if (group.admin_id === id) {
    const heir = accounts.find((account) => account.kind === "human" && account.id !== id);
    await tx.setAdmin(group.id, heir?.id ?? null);
    if (heir) changes.push({ kind: "admin_changed", subjects: [heir] });
  }
  await announceChanges(tx, group, actor, changes, humansAmong(going));
}

/** A new display name is the account's wherever it stands. */
export async function rename(
  tx: WriteTx,
  account: AccountRecord,
  display_name: string,
  owner = account.username,
): Promise<Account> {
  const version = await tx.setDisplayName(account.id, display_name);
  const params = publicAccount({ ...account, display_name, version });
  const frame = { method: "events.accountUpdated", params } as const;
  tx.emit(uncounted(frame, { users: [owner] }));
  for (const { uuid } of await tx.counters(account.id)) {
    tx.emit(uncounted(frame, { conversation: uuid }));
  }
  return params;
}
