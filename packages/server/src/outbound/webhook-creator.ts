import type { AuditLog } from "../security/audit-log.ts";
import { isOperator } from "../security/operators.ts";
import type { ReadTx, Store } from "../store/store.ts";
import type { WebhookRecord } from "../store/webhooks.ts";

export interface CreatorChecks {
  readonly store: Pick<Store, "read">;
  readonly audit: Pick<AuditLog, "write">;
  /** The operators of PARLEY_OPERATORS. */
  readonly operators: readonly string[];
}

/**
 * Whether the creator of a webhook may still read what it is sent. A service key may read everything;
 * an operator only conversations that they take part in.
 */
export async function mayCreatorRead(
  tx: ReadTx,
  { creator, chat }: Pick<WebhookRecord, "creator" | "chat">,
  operators: readonly string[],
): Promise<boolean> {
  if (creator === null) return true;
  const account = await tx.account(creator);
  if (!account || account.suspended_at !== null || account.erased_at !== null) return false;
  if (chat === null || !(await isOperator(tx, account, operators))) return false;
  return (await tx.conversation(chat, account.id))?.joined ?? false;
}

/** Disables the webhooks among these whose creator may not read what they are sent. Returns their ids. */
export async function disableUnreadable(
  ids: readonly string[],
  { store, audit, operators }: CreatorChecks,
): Promise<Set<string>> {
  if (ids.length === 0) return new Set();
  const unreadable = await store.read(async (tx) => {
    const found: string[] = [];
    for (const id of ids) {
      const webhook = await tx.webhook(id);
      if (webhook && !(await mayCreatorRead(tx, webhook, operators))) found.push(id);
    }
    return found;
  });
  for (const id of unreadable) await disable(id, audit);
  return new Set(unreadable);
}

const disable = (id: string, audit: Pick<AuditLog, "write">): Promise<void> =>
  audit.write(async (tx, record) => {
    const webhook = await tx.webhook(id);
    // Another node may have disabled it meanwhile.
    if (webhook?.disabled !== null) return;
    await tx.setWebhook(id, { disabled: "creator" });
    await record("webhook_disabled", { account: webhook.creator, webhook: id, reason: "creator" });
  });
