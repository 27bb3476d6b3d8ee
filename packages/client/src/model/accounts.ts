import type { Account } from "@parley/protocol";

/** The newest known record of each account, by username. */
export type Accounts = Readonly<Record<string, Account>>;

type Tree = Record<string, unknown>;

const isTree = (value: unknown): value is Tree => typeof value === "object" && value !== null;

/** True for accounts and for agent profiles. Older servers send no `version`. */
const isAccount = (value: Tree): boolean =>
  typeof value.username === "string" && typeof value.version === "number";

/** Adds every account record in the value that is newer than the known one. */
export function collectAccounts(accounts: Accounts, value: unknown): Accounts {
  const newer: Record<string, Account> = {};
  collect(accounts, newer, value);
  return Object.keys(newer).length === 0 ? accounts : { ...accounts, ...newer };
}

function collect(accounts: Accounts, newer: Record<string, Account>, value: unknown): void {
  if (!isTree(value)) return;
  if (isAccount(value)) {
    const account = value as unknown as Account;
    const known = newer[account.username] ?? accounts[account.username];
    if (account.version > (known?.version ?? -1)) newer[account.username] = account;
  }
  for (const child of Object.values(value)) collect(accounts, newer, child);
}

/** Gives every account in the value its newest display name, and marks deleted ones. Returns the same object if nothing changes. */
export function updateNames<Value>(accounts: Accounts, value: Value): Value {
  if (!isTree(value)) return value;
  let copy = isAccount(value) ? updateName(accounts, value) : value;
  for (const [key, child] of Object.entries(value)) {
    const updated = updateNames(accounts, child);
    if (updated === child) continue;
    if (copy === value) copy = (Array.isArray(value) ? [...value] : { ...value }) as Value & Tree;
    (copy as Tree)[key] = updated;
  }
  return copy;
}

function updateName<Value extends Tree>(accounts: Accounts, value: Value): Value {
  const newest = accounts[value.username as string];
  if (!newest || newest.version <= (value.version as number)) return value;
  const { display_name, version, deleted } = newest;
  return { ...value, display_name, version, ...(deleted && { deleted }) };
}
