import { z } from "zod";
import { auditActions } from "../audit.ts";
import { cursor, limit, operation, page } from "../operation.ts";
import { AuditEntry } from "../records.ts";
import { username } from "../text.ts";

export const getAuditLog = operation({
  name: "getAuditLog",
  socket: "operators.audit_log",
  summary: "Lists entries of the audit log, newest first.",
  access: "operator",
  input: z.object({
    action: z.enum(auditActions).optional().meta({ description: "Lists only this action." }),
    account: username.optional().meta({
      description: "Lists only entries that concern the account with this username.",
    }),
    since: z.iso
      .datetime()
      .optional()
      .meta({ description: "Lists only entries of this time or later." }),
    cursor,
    limit,
  }),
  output: page(AuditEntry),
});
