import { z } from "zod";
import { cursor, limit, operation, page } from "../operation.ts";
import { auditActions } from "../records/audit-actions.ts";
import { AuditEntry, ManagedAccount, Statistics } from "../records.ts";
import { text, username } from "../text/fields.ts";
import { deletedMessages } from "./own-data.ts";

export const getAccounts = operation({
  name: "getAccounts",
  socket: "operators.accounts",
  summary: "Lists the accounts of people, by username: all of them, or those that match.",
  access: "operator",
  input: z.object({
    query: text(0, 128).optional().meta({
      description:
        "The beginning of a username or of a word in a display name, or a whole external id.",
    }),
    suspended: z
      .boolean()
      .optional()
      .meta({ description: "Lists only suspended accounts, or only others." }),
    cursor,
    limit,
  }),
  output: page(ManagedAccount),
});

export const suspendAccount = operation({
  name: "suspendAccount",
  socket: "operators.suspend",
  summary:
    "Suspends a person's account: ends all of its sessions, sockets and agents' turns at once.",
  access: "operator",
  input: z.object({ username }),
  output: ManagedAccount,
  errors: ["not_found", "conflict"],
});

export const restoreAccount = operation({
  name: "restoreAccount",
  socket: "operators.restore",
  summary: "Lets the person of a suspended account sign in again.",
  access: "operator",
  input: z.object({ username }),
  output: ManagedAccount,
  errors: ["not_found"],
});

export const eraseAccount = operation({
  name: "eraseAccount",
  socket: "operators.erase",
  sensitive: true,
  summary:
    "Deletes a person's account for good, as `deleteMe` does. It cannot be restored, and its username is never given to anybody else.",
  access: "operator",
  input: z.object({ username, messages: deletedMessages }),
  errors: ["not_found", "conflict"],
});

export const getStatistics = operation({
  name: "getStatistics",
  socket: "operators.statistics",
  summary: "Returns how much the service has and does.",
  access: "operator",
  output: Statistics,
});

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
