import type { ProviderNames } from "../rules/agents.ts";
import { usernameCandidates, usernameFrom } from "../rules/usernames.ts";
import type { AuditLog } from "../security/audit-log.ts";
import type { Identity, OidcAccounts } from "../security/oidc.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { WriteTx } from "../store/store.ts";
import { CreationConflict, changeDisplayName, createPerson, retryOnConflict } from "./accounts.ts";
import { lockActive } from "./sessions.ts";

export interface OidcAccountsOptions {
  readonly audit: AuditLog;
  readonly providers: ProviderNames;
  /** Usernames that no account of an identity gets: whoever has one is an operator. */
  readonly operators: readonly string[];
}

export function createOidcAccounts(options: OidcAccountsOptions): OidcAccounts {
  const { audit, providers, operators } = options;

  /**
   * Finds or creates the account of an identity. An account with a password is never taken over.
   * `isLinked`: an earlier version has created it, which knew it by its username only.
   */
  async function accountOf(tx: WriteTx, identity: Identity) {
    const { issuer, subject, requestedName } = identity;
    const known = await tx.identity(issuer, subject);
    if (known) return { account: known, isNew: false, isLinked: false };
    const username = usernameFrom(requestedName);
    const earlier = username === requestedName ? await lockUnlinked(tx, username) : null;
    const account = earlier ?? (await createAccount(tx, identity, username));
    const link = { issuer, subject, account_id: account.id, at: Date.now() };
    if (!(await tx.insertIdentity(link))) throw new CreationConflict();
    return { account, isNew: earlier === null, isLinked: earlier !== null };
  }

  /** Creates the account under the requested username or, if it is taken, the next free variant. */
  async function createAccount(tx: WriteTx, identity: Identity, requested: string) {
    for (const username of usernameCandidates(requested)) {
      if (operators.includes(username) || (await tx.account(username))) continue;
      const display_name = identity.display_name ?? username;
      const created = await createPerson(tx, { username, display_name }, providers);
      if (created) return created;
      // The account that has just taken the name may be this identity's, created by another node.
      if (await tx.identity(identity.issuer, identity.subject)) throw new CreationConflict();
    }
    throw new Error("there is no username left");
  }

  return {
    signIn: (identity, origin, open) =>
      // Concurrent calls of a new identity all try to create its account.
      retryOnConflict(() =>
        audit.write(async (tx, record) => {
          const { account, isNew, isLinked } = await accountOf(tx, identity);
          await lockActive(tx, account);
          const renamed = await takeName(tx, account, identity);
          const { session_id, result } = await open(tx, renamed);
          const details = { account: account.username, origin, issuer: identity.issuer };
          if (isNew) await record("oidc_account_created", details);
          if (isLinked) await record("oidc_account_linked", details);
          await record("sign_in", { ...details, session_id, method: "oidc" });
          return result;
        }),
      ),
  };
}

/** Takes over the issuer's display name, if it has one. */
async function takeName(tx: WriteTx, account: AccountRecord, { display_name }: Identity) {
  if (display_name === null || display_name === account.display_name) return account;
  const { version } = await changeDisplayName(tx, account, display_name);
  return { ...account, display_name, version };
}

/** Another identity may request the same username at the same time: one of them gets the account. */
async function lockUnlinked(tx: WriteTx, username: string): Promise<AccountRecord | null> {
  const found = await tx.unlinkedAccount(username);
  if (!found) return null;
  await tx.lockCredentials(found.id);
  return tx.unlinkedAccount(username);
}
