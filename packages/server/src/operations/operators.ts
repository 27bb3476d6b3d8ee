import { type AuditEntry, operations } from "@parley/protocol";
import { z } from "zod";
import { cursorOf, pageOf, pageSize } from "../domain/pagination.ts";
import { bind } from "../operation.ts";
import type { AuditRecord } from "../store/audit-log.ts";

const auditCursor = cursorOf(z.int());

const getAuditLog = bind(operations.getAuditLog, async ({ store, config }, input) => {
  const { action, account, since, cursor } = input;
  const limit = pageSize(input.limit, config.limits);
  const found = await store.read((tx) =>
    tx.auditLog({
      action,
      account,
      since: since === undefined ? undefined : Date.parse(since),
      before: auditCursor.decode(cursor),
      limit: limit + 1,
    }),
  );
  return pageOf(found.map(entryOf), limit, ({ id }) => auditCursor.encode(id));
});

export const operators = [getAuditLog];

function entryOf({ id, at, action, account, details }: AuditRecord): AuditEntry {
  const textOf = (name: string) => (details[name] == null ? null : String(details[name]));
  const others = Object.entries(details).filter(([name]) => !COMMON_DETAILS.includes(name));
  return {
    id,
    at: new Date(at).toISOString(),
    action,
    account,
    operator: textOf("operator"),
    service_key: textOf("service_key"),
    address: textOf("address"),
    user_agent: textOf("user_agent"),
    details: Object.fromEntries(others),
  };
}

/** Details that entries have as fields of their own. */
const COMMON_DETAILS = ["operator", "service_key", "address", "user_agent"];
