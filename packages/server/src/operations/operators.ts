import { type AuditEntry, type ManagedAccount, operations } from "@parley/protocol";
import { z } from "zod";
import { createResource } from "../calls/bind.ts";
import type { Context } from "../calls/needs.ts";
import { eraseAccount } from "../domain/erasures.ts";
import { createPages } from "../domain/pagination.ts";
import { restore, stopAgentsOf, suspend } from "../domain/suspension.ts";
import { VERSION } from "../observe/version.ts";
import { conflict, noAccounts } from "../rules/failure.ts";
import { iso, isoOrNull } from "../rules/time.ts";
import { type AnyCaller, actorOf } from "../security/caller.ts";
import type { AuditRecord } from "../store/audit-log.ts";
import type { ManagedAccountRecord } from "../store/operators.ts";
import type { ReadTx } from "../store/store.ts";

export const operators = createResource<"config" | "store" | "erasures" | "audit">();

const DAY_MS = 24 * 60 * 60 * 1000;

const accountPages = createPages(z.string(), ({ username }: ManagedAccount) => username);
const auditPages = createPages(z.int(), ({ id }: AuditEntry) => id);

operators.read(operations.getAccounts, async (tx, { config }, { suspended, ...input }) => {
  const { after, limit, of } = accountPages(input, config);
  const query = input.query?.trim() || undefined;
  const found = await tx.managedAccounts({ query, suspended, after, limit });
  return of(found.map((each) => managedAccount(each, config.operators)));
});

operators.handle(operations.suspendAccount, async (context, { username }) => {
  const { store, audit, config } = context;
  const suspended = await audit.write(async (tx, record) => {
    const account = await nonOperator(tx, context, username, "suspended");
    await suspend(tx, record, account, actorOf(context));
    return managedAccountNamed(tx, username);
  });
  await stopAgentsOf(store, suspended);
  return managedAccount(suspended, config.operators);
});

operators.audited(operations.restoreAccount, async (tx, record, context, { username }) => {
  await restore(tx, record, await managedAccountNamed(tx, username), actorOf(context));
  return managedAccount(await managedAccountNamed(tx, username), context.config.operators);
});

operators.handle(operations.eraseAccount, async (context, input) => {
  const { audit, erasures } = context;
  const { username, messages = false } = input;
  await audit.write(async (tx, record) => {
    const account = await nonOperator(tx, context, username, "erased");
    await eraseAccount(tx, record, account, { messages, details: actorOf(context) });
  });
  erasures.wake();
});

operators.read(operations.getStatistics, async (tx) => {
  const now = Date.now();
  const activeSince = { day: now - DAY_MS, month: now - 30 * DAY_MS };
  return { ...(await tx.statistics(activeSince)), version: VERSION };
});

operators.read(operations.getAuditLog, async (tx, { config }, { action, account, ...input }) => {
  const { after: before, limit, of } = auditPages(input, config);
  const since = input.since === undefined ? undefined : Date.parse(input.since);
  return of((await tx.auditLog({ action, account, since, before, limit })).map(entryOf));
});

async function nonOperator(
  tx: ReadTx,
  { config }: Context<"config", AnyCaller>,
  username: string,
  done: "suspended" | "erased",
) {
  const account = await managedAccountNamed(tx, username);
  if (!account.is_operator && !config.operators.includes(username)) return account;
  throw conflict(`an operator cannot be ${done}: remove them from the operators first`);
}

async function managedAccountNamed(tx: ReadTx, username: string): Promise<ManagedAccountRecord> {
  const [account] = await tx.managedAccounts({ username, limit: 1 });
  if (!account) throw noAccounts("user", username);
  return account;
}

function managedAccount(account: ManagedAccountRecord, configuredOperators: readonly string[]) {
  const { username, display_name, external_id, created_at, last_used_at, suspended_at } = account;
  return {
    username,
    display_name,
    external_id,
    metadata: { ...account.metadata },
    created_at: iso(created_at),
    last_active_at: isoOrNull(last_used_at),
    suspended_at: isoOrNull(suspended_at),
    is_operator: account.is_operator || configuredOperators.includes(username),
  };
}

function entryOf({ at, details: all, ...entry }: AuditRecord): AuditEntry {
  const { operator, service_key, address, user_agent, ...details } = all;
  const textOf = (detail: unknown) => (detail == null ? null : String(detail));
  return {
    ...entry,
    at: iso(at),
    operator: textOf(operator),
    service_key: textOf(service_key),
    address: textOf(address),
    user_agent: textOf(user_agent),
    details,
  };
}
