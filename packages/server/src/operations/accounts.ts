import { type Account, operations, UNRESTRICTED } from "@parley/protocol";
import { z } from "zod";
import { createResource } from "../calls/bind.ts";
import type { Config } from "../config/config.ts";
import { changeDisplayName } from "../domain/accounts.ts";
import { setBlocked } from "../domain/blocks.ts";
import { removeMember } from "../domain/groups.ts";
import { createPages } from "../domain/pagination.ts";
import { changeAvatar } from "../domain/pictures.ts";
import { policyOf, visibleAccount, visibleAccounts } from "../domain/policies.ts";
import { setPresence } from "../domain/presence.ts";
import { lockActive } from "../domain/sessions.ts";
import { linksNow } from "../files/links.ts";
import { publicAccount } from "../rules/accounts.ts";
import { badField } from "../rules/failure.ts";
import { iso } from "../rules/time.ts";
import type { Caller } from "../security/caller.ts";
import { isOperator } from "../security/operators.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { ReadTx, WriteTx } from "../store/store.ts";

export const accounts = createResource<"config" | "store" | "files">();

/** Groups that one call of `blockUser` leaves, and what each of them costs. */
const GROUPS_PER_CALL = 100;
const COST_OF_LEAVING = 5;

const listPages = createPages(z.string(), ({ username }: Account) => username);
const findPages = createPages(
  z.object({ name: z.string(), username: z.string() }),
  ({ name, username }: { name: string; username: string }) => ({ name, username }),
);

accounts.read(operations.getMe, (tx, { config, caller }) => ownAccount(tx, caller.account, config));

accounts.read(operations.getUser, async (tx, { config, caller }, { username }) =>
  publicAccount(await visibleAccount(tx, config, caller.account, username)),
);

accounts.read(operations.getUsers, async (tx, { caller, config }, input) => {
  const { directory } = await policyOf(tx, config, caller.account);
  const scope = { viewerId: caller.account.id, directory };
  const query = input.query?.trim();
  if (query && !input.usernames) {
    const { after, limit, of } = findPages(input, config);
    const { items, next_cursor } = of(await tx.findAccounts({ ...scope, query, after, limit }));
    return { items: items.map(publicAccount), next_cursor };
  }
  const { after, limit, of } = listPages(input, config);
  const { usernames } = input;
  return of((await tx.listAccounts({ ...scope, usernames, after, limit })).map(publicAccount));
});

accounts.write(operations.updateMe, async (tx, { config, caller: { account } }, input) => {
  await lockActive(tx, account);
  const { display_name, added_by, presence } = input;
  if (added_by !== undefined) await tx.setAddedBy(account.id, added_by);
  if (presence !== undefined) await setPresence(tx, account, presence);
  if (display_name === undefined) return ownAccount(tx, account, config);
  const renamed = await changeDisplayName(tx, account, display_name);
  return ownAccount(tx, { ...account, ...renamed }, config);
});

accounts.write(operations.setAvatar, async (tx, { config, caller }, { file_id }) =>
  ownAccount(tx, await changeAvatar(tx, caller, file_id), config),
);

accounts.read(operations.getProfiles, async (tx, context, { usernames }) => {
  const { files, origin, config, caller } = context;
  const named = await tx.accounts([...new Set(usernames)]);
  const policy = await policyOf(tx, config, caller.account);
  const found = await visibleAccounts(tx, policy, caller.account, named);
  const avatars = await tx.avatars(found.map(({ id }) => id));
  const fileIds = new Map(avatars.map(({ account_id, file_id }) => [account_id, file_id]));
  const links = files && linksNow(files, origin);
  return {
    items: found.map((account) => ({
      account: publicAccount(account),
      ...pictureLinks(links, fileIds.get(account.id)),
    })),
  };
});

accounts.handle(operations.blockUser, async (context, { username, leave_groups }) => {
  const { store, config, caller, charge } = context;
  const { account } = caller;
  const person = await store.write(async (tx) => {
    const found = checkPerson(await visibleAccount(tx, config, account, username));
    if (found.id === account.id) throw badField("username", "is your own");
    await lockActive(tx, account);
    await setBlocked(tx, account, found, true);
    return found;
  });
  if (!leave_groups) return undefined;
  const groups = await store.read((tx) =>
    tx.unansweredGroups(account.id, person.id, GROUPS_PER_CALL + 1),
  );
  const left = groups.slice(0, GROUPS_PER_CALL);
  // Each in a unit of its own, so that calls of others are served in between.
  for (const uuid of left) {
    charge(COST_OF_LEAVING);
    await store.write((tx) => leaveIfMember(tx, uuid, caller));
  }
  return { groups_left: left.length, has_more: groups.length > left.length };
});

/** Leaves a group, unless the caller is no member of it any more. */
async function leaveIfMember(tx: WriteTx, uuid: string, { account }: Caller): Promise<void> {
  const group = await tx.conversation(uuid, account.id);
  if (group?.joined) await removeMember(tx, group, await tx.members(group.id), account, account);
}

accounts.write(operations.unblockUser, async (tx, { config, caller }, { username }) => {
  const { account } = caller;
  const { usernames } = await tx.blockList(account.id);
  const blocked = usernames.includes(username) ? await tx.account(username) : null;
  const person = blocked ?? (await visibleAccount(tx, config, account, username));
  await setBlocked(tx, account, checkPerson(person), false);
});

accounts.read(operations.getBlocked, async (tx, { caller, config }, input) => {
  const { after, limit, of } = listPages(input, config);
  const found = await tx.blockedAccounts({ accountId: caller.account.id, after, limit });
  return of(found.map(publicAccount));
});

function pictureLinks(links: ReturnType<typeof linksNow> | null, fileId: string | undefined) {
  if (!links || fileId === undefined) {
    return { picture_url: null, preview_url: null, expires_at: null };
  }
  const { link, end } = links;
  return {
    picture_url: link("content", fileId),
    preview_url: link("preview", fileId),
    expires_at: iso(end),
  };
}

/** The account as its own person sees it. */
async function ownAccount(tx: ReadTx, account: AccountRecord, config: Config) {
  const operates = await isOperator(tx, account, config.operators);
  const added_by = await tx.addedBy(account.id);
  const policy = await policyOf(tx, config, account);
  return {
    ...publicAccount(account),
    ...(added_by !== "everyone" && { added_by }),
    ...(account.kind === "human" && { presence: await tx.presenceSetting(account.id) }),
    ...(operates && { is_operator: true as const }),
    ...(!Bun.deepEquals(policy, UNRESTRICTED) && { policy }),
  };
}

/** The account, which must be a person's (400). */
function checkPerson(account: AccountRecord): AccountRecord {
  if (account.kind !== "human") throw badField("username", "is not a person: name its owner");
  return account;
}
