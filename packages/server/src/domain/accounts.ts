import type { Account } from "@parley/protocol";
import { durable } from "../changes/change.ts";
import { publicAccount } from "../rules/accounts.ts";
import { agentsOf, type ProviderNames } from "../rules/agents.ts";
import type { AccountRecord, NewAccount } from "../store/accounts.ts";
import type { WriteTx } from "../store/store.ts";

type NewPerson = Omit<NewAccount, "kind" | "owner_id" | "provider" | "at">;

/** Creates a person's account with one agent per provider. Returns null if the username is taken. */
export async function createPerson(tx: WriteTx, person: NewPerson, providers: ProviderNames) {
  const [account = null] = await createPeople(tx, [person], providers);
  return account;
}

/**
 * Creates the accounts of several people with their agents. People whose username or external id is
 * taken are left out of the result.
 */
export async function createPeople(
  tx: WriteTx,
  people: readonly NewPerson[],
  providers: ProviderNames,
): Promise<AccountRecord[]> {
  const at = Date.now();
  const made = await tx.insertAccounts(people.map((each) => ({ ...each, kind: "human", at })));
  const agents = made.flatMap((account) => agentsOf(account, providers));
  await tx.insertAccounts(agents.map((agent) => ({ ...agent, at })));
  return made;
}

/**
 * Changes a display name and announces it to the account's own clients (an agent's: its owner's) and
 * to everybody in a conversation that shows it: to each client once.
 */
export async function changeDisplayName(
  tx: WriteTx,
  account: AccountRecord,
  display_name: string,
  owner = account.username,
): Promise<Account> {
  const version = await tx.setDisplayName(account.id, display_name);
  return announceAccount(tx, { ...account, display_name, version }, owner);
}

/**
 * Tells the clients of a person that what only they see of an account has changed. Nobody else sees it,
 * so the person's own counter orders it, not the version of the account.
 */
export async function announceOwn(
  tx: WriteTx,
  account: AccountRecord,
  person: Pick<AccountRecord, "id" | "username">,
): Promise<void> {
  const params = publicAccount(account);
  const own_seq = await tx.countOwnChange(person.id);
  const frame = { method: "events.accountUpdated", params, own_seq } as const;
  tx.emit(durable(frame, { users: [person.username] }, { account: params }));
}

/** Announces a new display name or picture to the same clients. */
export async function announceAccount(
  tx: WriteTx,
  account: AccountRecord,
  owner = account.username,
): Promise<Account> {
  const params = publicAccount(account);
  const frame = { method: "events.accountUpdated", params } as const;
  const { usernames, conversations } = await tx.nameAudience(account.id);
  const users = [...new Set([owner, ...usernames])];
  tx.emit(durable(frame, { users }, { account: params, concerns: conversations }));
  return params;
}

/** Another node created at the same time what a unit of work was about to create. */
export class CreationConflict extends Error {}

const MAX_ATTEMPTS = 5;

/** Runs the work again after a conflict: it then finds what the other node created. */
export async function retryOnConflict<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof CreationConflict) || attempt === MAX_ATTEMPTS) throw error;
    }
  }
}
