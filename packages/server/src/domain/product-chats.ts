import type { InputOf, OutputOf } from "@parley/protocol";
import { type AccountRecord, NOBODY } from "../rules/accounts.ts";
import { badField, checkItems } from "../rules/failure.ts";
import type { ConversationRecord } from "../store/conversations.ts";
import type { NewChange } from "../store/group-changes.ts";
import { isNonEmpty } from "../store/non-empty.ts";
import type { ReadTx, WriteTx } from "../store/store.ts";
import {
  addMembers,
  announceChanges,
  announceNew,
  checkGroupSize,
  lockInvited,
  removeMember,
} from "./groups.ts";
import { accountsNamed } from "./users.ts";

/** A group as the product describes it. */
type ProductChat = InputOf<"upsertChats">["chats"][number];

/** Creates groups of a product, and updates those that exist. */
export async function upsertChats(
  tx: WriteTx,
  chats: readonly ProductChat[],
  limits: { readonly group_participants: number },
) {
  const found = await tx.chatsByExternalId(chats.map(({ external_id }) => external_id));
  const known = new Map(found.map(({ external_id, uuid }) => [external_id, uuid]));
  const items: OutputOf<"upsertChats">["items"] = [];
  for (const [place, chat] of chats.entries()) {
    const { external_id } = chat;
    const uuid = known.get(external_id);
    const created = uuid === undefined;
    const field = `chats.${place}.members`;
    const members = chat.members && (await membersOf(tx, chat.members, field));
    if (members) checkGroupSize(members.length, limits, field);
    else if (created) throw badField(field, "is required for a new group");
    const id = created
      ? await createChat(tx, chat, members ?? [])
      : await updateChat(tx, uuid, chat, members);
    items.push({ external_id, chat: await tx.sharedConversation(id), created });
  }
  return items;
}

/** The accounts of these names. Throws (400) unless all of them can take part. */
async function membersOf(tx: ReadTx, names: readonly string[], field: string) {
  const named = await accountsNamed(tx, names);
  const ids = new Set([...named.values()].map(({ id }) => id));
  const problemOf = (name: string) => {
    const account = named.get(name);
    if (!account) return "names nobody";
    const isAlone = account.kind === "agent" && !mayTakePart(account, ids);
    return isAlone && "is an agent without its owner";
  };
  checkItems(names, (place) => `${field}.${place}`, problemOf);
  return [...new Map([...named.values()].map((account) => [account.id, account])).values()];
}

/** Accounts of hooks only post. */
const mayTakePart = ({ owner_id, provider }: AccountRecord, ids: ReadonlySet<number>) =>
  provider !== null && owner_id !== null && ids.has(owner_id);

/** The group has no admin: the product decides on it. */
async function createChat(
  tx: WriteTx,
  { external_id, title, metadata = {} }: ProductChat,
  members: readonly AccountRecord[],
): Promise<number> {
  // An agent is never without its owner, so there is a person.
  const creator = members.find(({ kind }) => kind === "human");
  if (!creator) throw new Error("a group without people");
  await lockInvited(tx, members);
  const at = Date.now();
  const id = await tx.insertConversation({
    uuid: Bun.randomUUIDv7(),
    kind: "group",
    title: title ?? null,
    created_by: creator.id,
    external_id,
    metadata,
    at,
  });
  await tx.setAdmin(id, null);
  const ids = members.map((member) => member.id);
  await tx.insertMembers(id, ids, at);
  await announceNew(tx, id, members, undefined);
  return id;
}

/** Changes what is different. Participants see changes as made by whoever the group began with. */
async function updateChat(
  tx: WriteTx,
  uuid: string,
  { title, metadata }: ProductChat,
  members: readonly AccountRecord[] | undefined,
): Promise<number> {
  const group = await tx.conversation(uuid, NOBODY);
  if (!group) throw new Error(`conversation ${uuid} is missing`);
  const before = await tx.sharedConversation(group.id);
  const actor = await tx.account(before.created_by.username);
  if (!actor) throw new Error(`the creator of conversation ${uuid} is missing`);
  const changes: NewChange[] = [];
  if (title !== undefined && title !== before.title) {
    await tx.setTitle(group.id, title);
    changes.push({ kind: "renamed", title });
  }
  if (metadata !== undefined && !Bun.deepEquals(metadata, before.metadata)) {
    await tx.setChatMetadata(group.id, metadata);
    changes.push({ kind: "metadata_changed" });
  }
  if (isNonEmpty(changes)) await announceChanges(tx, group, actor, changes);
  if (members) await setMembers(tx, group, members, actor);
  return group.id;
}

/** People who left for good are not added again. */
async function setMembers(
  tx: WriteTx,
  group: ConversationRecord,
  wanted: readonly AccountRecord[],
  actor: AccountRecord,
): Promise<void> {
  const present = (await tx.members(group.id)).map(({ account }) => account);
  const presentIds = new Set(present.map(({ id }) => id));
  const wantedIds = new Set(wanted.map(({ id }) => id));
  const gone = new Set(await tx.goneForGood(group.id, [...wantedIds]));
  const added = wanted.filter(({ id }) => !presentIds.has(id) && !gone.has(id));
  if (added.length > 0) await addMembers(tx, group, added, actor);
  for (const account of present) {
    if (account.kind === "agent" || wantedIds.has(account.id)) continue;
    await removeMember(tx, group, await tx.members(group.id), account, account);
  }
}
