import type { Account } from "@parley/protocol";

/** The newest record of each account that was seen, by username. */
export type Accounts = Readonly<Record<string, Account>>;

type Tree = Record<string, unknown>;

const isTree = (value: unknown): value is Tree => typeof value === "object" && value !== null;

/** Accounts, and agents as their owner sees them. Servers of an earlier version give no versions. */
const isAccount = (value: Tree): boolean =>
  typeof value.username === "string" && typeof value.version === "number";

/** The accounts known after a value was seen, with every newer record that stands in it. */
export function withAccountsIn(accounts: Accounts, value: unknown): Accounts {
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
  for (const part of Object.values(value)) collect(accounts, newer, part);
}

/** The value with every account in it under its newest name; the same object if all are. */
export function underNewestNames<Value>(accounts: Accounts, value: Value): Value {
  if (!isTree(value)) return value;
  let copy = isAccount(value) ? underNewestName(accounts, value) : value;
  for (const [key, part] of Object.entries(value)) {
    const renamed = underNewestNames(accounts, part);
    if (renamed === part) continue;
    if (copy === value) copy = (Array.isArray(value) ? [...value] : { ...value }) as Value & Tree;
    (copy as Tree)[key] = renamed;
  }
  return copy;
}

function underNewestName<Value extends Tree>(accounts: Accounts, value: Value): Value {
  const newest = accounts[value.username as string];
  if (!newest || newest.version <= (value.version as number)) return value;
  return { ...value, display_name: newest.display_name, version: newest.version };
}
