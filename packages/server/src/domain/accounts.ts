import { agentsOf, type ProviderNames } from "../rules/agents.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { WriteTx } from "../store/store.ts";

export interface NewPerson {
  username: string;
  display_name: string;
  /** Absent for people who sign in with a token of the OIDC issuer. */
  password_hash?: string;
}

/** Creates a person's account with one agent per provider. Returns null if the username is taken. */
export async function createPerson(
  tx: WriteTx,
  person: NewPerson,
  providers: ProviderNames,
): Promise<AccountRecord | null> {
  const at = Date.now();
  const account = await tx.insertAccount({ ...person, kind: "human", at });
  if (!account) return null;
  for (const agent of agentsOf(account, providers)) await tx.insertAccount({ ...agent, at });
  return account;
}
