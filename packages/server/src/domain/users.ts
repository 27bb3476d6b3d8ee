import type { Account, InputOf, OutputOf } from "@parley/protocol";
import type { Config } from "../config/config.ts";
import { publicAccount } from "../rules/accounts.ts";
import type { ProviderNames } from "../rules/agents.ts";
import { checkItems, conflictingFields, notFound } from "../rules/failure.ts";
import { productUsernames } from "../rules/usernames.ts";
import type { AccountRecord, ProductAccount } from "../store/accounts.ts";
import type { ReadTx, WriteTx } from "../store/store.ts";
import { announceOwn, CreationConflict, changeDisplayName, createPeople } from "./accounts.ts";

/** A person as the product that embeds the service describes them. */
type ProductUser = InputOf<"upsertUsers">["users"][number];

/**
 * Creates the accounts of users of a product, and updates those that exist. None gets the username of
 * an operator. Throws a `CreationConflict` when another unit has taken a username or an external id
 * meanwhile.
 */
export async function upsertUsers(
  tx: WriteTx,
  users: readonly ProductUser[],
  { providers, operators }: Pick<Config, "providers" | "operators">,
) {
  const found = await tx.productAccounts(users.map(({ external_id }) => external_id));
  const known = new Map(found.map((account) => [account.external_id, account]));
  const newcomers = users.filter(({ external_id }) => !known.has(external_id));
  const usernames = await chooseUsernames(tx, users, known, operators);
  const created = await createAccounts(tx, newcomers, usernames, providers);
  const items: OutputOf<"upsertUsers">["items"] = [];
  for (const user of users) {
    const { external_id } = user;
    const existing = known.get(external_id);
    const account = existing ? await updateUser(tx, existing, user) : created.get(external_id);
    if (account) items.push({ external_id, account: publicAccount(account), created: !existing });
  }
  return items;
}

/** Throws `bad_request` when an external id is given twice in a list with this name. */
export function checkRepetition(list: string, items: readonly { readonly external_id: string }[]) {
  const ids = items.map(({ external_id }) => external_id);
  const pathOf = (place: number) => `${list}.${place}.external_id`;
  checkItems(ids, pathOf, (id, place) => ids.indexOf(id) !== place && "is repeated");
}

/** The person with that external id or username. */
export async function productUser(
  tx: ReadTx,
  {
    external_id,
    username = "",
  }: { external_id?: string | undefined; username?: string | undefined },
): Promise<AccountRecord> {
  const account = await (external_id === undefined
    ? tx.account(username)
    : tx.accountByExternalId(external_id));
  if (account?.kind === "human" && account.erased_at === null) return account;
  throw notFound(`user ${external_id === undefined ? username : `with the id ${external_id}`}`);
}

const EXTERNAL_ID = "id:";

/** The accounts of these names: usernames, or `id:` and external ids. Erased accounts are left out. */
export async function accountsNamed(tx: ReadTx, given: readonly string[]) {
  const isId = (name: string) => name.startsWith(EXTERNAL_ID);
  const keyOf = (name: string) => (isId(name) ? name : name.toLowerCase());
  const keys = [...new Set(given.map(keyOf))];
  const ids = keys.filter(isId).map((key) => key.slice(EXTERNAL_ID.length));
  const byId = await tx.productAccounts(ids);
  const byUsername = await tx.accounts(keys.filter((key) => !isId(key)));
  const accounts = new Map<string, AccountRecord>([
    ...byId.map((account) => [`${EXTERNAL_ID}${account.external_id}`, account] as const),
    ...byUsername.map((account) => [account.username, account] as const),
  ]);
  const found = new Map<string, AccountRecord>();
  for (const name of given) {
    const account = accounts.get(keyOf(name));
    if (account?.erased_at === null) found.set(name, account);
  }
  return found;
}

/** The username of each new user, by external id. Throws `conflict` where a requested one is taken. */
async function chooseUsernames(
  tx: ReadTx,
  users: readonly ProductUser[],
  known: ReadonlyMap<string, AccountRecord>,
  reserved: readonly string[],
): Promise<Map<string, string>> {
  const namesFor = (user: ProductUser) =>
    user.username === undefined ? productUsernames(user) : [user.username];
  const candidates = new Map(users.map((user) => [user.external_id, namesFor(user)]));
  const existing = await tx.accounts([...candidates.values()].flat());
  const taken = new Set([...reserved, ...existing.map(({ username }) => username)]);
  const chosen = new Map<string, string>();
  const problemOf = ({ external_id, username }: ProductUser) => {
    if (username === undefined) return null;
    const account = known.get(external_id);
    const problem = account
      ? account.username !== username && "cannot be changed"
      : taken.has(username) && "is taken";
    taken.add(username);
    chosen.set(external_id, username);
    return problem;
  };
  checkItems(users, (place) => `users.${place}.username`, problemOf, conflictingFields);
  for (const { external_id, username } of users) {
    if (username !== undefined || known.has(external_id)) continue;
    const free = candidates.get(external_id)?.find((name) => !taken.has(name));
    if (free === undefined) throw new Error("there is no username left");
    taken.add(free);
    chosen.set(external_id, free);
  }
  return chosen;
}

async function createAccounts(
  tx: WriteTx,
  users: readonly ProductUser[],
  usernames: ReadonlyMap<string, string>,
  providers: ProviderNames,
): Promise<Map<string, AccountRecord>> {
  const people = users.map(({ external_id, display_name, ...rest }) => {
    const username = usernames.get(external_id) ?? "";
    return { ...rest, username, display_name: display_name ?? username, external_id };
  });
  const accounts = await createPeople(tx, people, providers);
  if (accounts.length < people.length) throw new CreationConflict();
  const idOf = new Map(people.map(({ external_id, username }) => [username, external_id]));
  return new Map(accounts.map((account) => [idOf.get(account.username) ?? "", account]));
}

async function updateUser(
  tx: WriteTx,
  account: ProductAccount,
  { display_name, metadata, policy }: ProductUser,
): Promise<Account> {
  if (metadata !== undefined && !Bun.deepEquals(metadata, account.metadata ?? {})) {
    await tx.setMetadata(account.id, metadata);
  }
  if (policy !== undefined && !Bun.deepEquals(policy, account.policy ?? {})) {
    await tx.setPolicy(account.id, policy);
    await announceOwn(tx, account, account);
  }
  if (display_name === undefined || display_name === account.display_name) return account;
  return changeDisplayName(tx, account, display_name);
}
