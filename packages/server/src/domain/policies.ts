import type { Policy } from "@parley/protocol";
import { personOf } from "../rules/accounts.ts";
import { forbidden, noAccounts } from "../rules/failure.ts";
import {
  type PolicySwitch,
  policyInForce,
  refusals,
  type ServerPolicy,
} from "../rules/policies.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { ReadTx } from "../store/store.ts";

interface PolicyConfig {
  readonly policy: ServerPolicy;
}

/** What a person may do, or the owner of an agent. */
export const policyOf = async (
  tx: ReadTx,
  { policy }: PolicyConfig,
  account: AccountRecord,
): Promise<Policy> => policyInForce(policy, await tx.policySource(personOf(account)));

/** Throws `forbidden` unless the policy of the person, or of the agent's owner, allows it. */
export async function checkAllowed(
  tx: ReadTx,
  config: PolicyConfig,
  account: AccountRecord,
  field: PolicySwitch,
): Promise<void> {
  const policy = await policyOf(tx, config, account);
  if (!policy[field]) throw forbidden(refusals[field]);
}

/** The subset of these accounts that the person can look up. */
export const visibleAccounts = async (
  tx: ReadTx,
  { directory }: Policy,
  viewer: AccountRecord,
  accounts: readonly AccountRecord[],
): Promise<readonly AccountRecord[]> =>
  directory === "everyone" ? accounts : sharing(tx, viewer, accounts);

/** The account with that username. Throws (404) if there is none that the person can look up. */
export async function visibleAccount(
  tx: ReadTx,
  config: PolicyConfig,
  viewer: AccountRecord,
  username: string,
  kind: "user" | "agent" = "user",
): Promise<AccountRecord> {
  const account = await tx.account(username);
  const policy = await policyOf(tx, config, viewer);
  const [visible] = account ? await visibleAccounts(tx, policy, viewer, [account]) : [];
  if (!visible) throw noAccounts(kind, username);
  return visible;
}

/** Throws `forbidden` if the policy does not let the person start conversations with all of them. */
export async function checkMayAdd(
  tx: ReadTx,
  { start_chats }: Policy,
  person: AccountRecord,
  added: readonly AccountRecord[],
): Promise<void> {
  if (start_chats === "everyone") return;
  if (start_chats === "none") {
    throw forbidden("you may not start conversations or add members");
  }
  const others = added.filter(({ owner_id }) => owner_id !== person.id);
  const known = start_chats === "shared" ? await sharing(tx, person, others) : [];
  const stranger = others.find((account) => !known.includes(account));
  if (stranger) throw forbidden(`you may not start conversations with ${stranger.username}`);
}

async function sharing(tx: ReadTx, viewer: AccountRecord, accounts: readonly AccountRecord[]) {
  if (accounts.length === 0) return accounts;
  const ids = accounts.map(({ id }) => id);
  const shared = new Set(await tx.sharingAccounts(viewer.id, ids));
  return accounts.filter(({ id }) => shared.has(id));
}
