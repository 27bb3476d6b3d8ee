import { expect, test } from "bun:test";
import type { AuditEntry } from "@parley/protocol";
import { auditActions } from "@parley/protocol/records/audit-actions";
import { auditSentence } from "../src/operate/audit-sentences.ts";

const entry = (action: string, fields: Partial<AuditEntry> = {}): AuditEntry => ({
  id: 1,
  at: "2026-11-16T08:00:00.000Z",
  action,
  account: "ada",
  operator: null,
  service_key: null,
  address: "192.0.2.1",
  user_agent: null,
  details: {},
  ...fields,
});

test.each(auditActions)("an entry of the audit log with the action %s is readable", (action) => {
  const sentence = auditSentence(entry(action, { service_key: "shop" }));
  expect(sentence).not.toContain("_");
  expect(sentence).not.toMatch(/undefined|null/);
});

test.each([
  ["sign_in", { details: { method: "password" } }, "@ada signed in"],
  ["sign_in", { details: { method: "oidc" } }, "@ada signed in by single sign-on"],
  [
    "sign_in",
    { details: { method: "service_key" }, service_key: "shop" },
    "The service key «shop» issued a token for @ada",
  ],
  ["sign_in_failed", { account: null }, "A sign-in to an account that does not exist failed"],
  ["sign_up", { address: null }, "The account @ada was created by a command"],
  ["account_suspended", { operator: "olga" }, "@ada was suspended by @olga"],
  ["account_suspended", { service_key: "shop" }, "@ada was suspended by the service key «shop»"],
  ["account_suspended", {}, "@ada was suspended by a command"],
  ["account_erased", {}, "@ada deleted their account"],
  ["account_erased", { operator: "olga" }, "@ada was erased by @olga"],
  ["account_erased", { address: null }, "@ada was erased by a command"],
  ["throttled", { details: { operation: "sendMessage" } }, "@ada called sendMessage too often"],
  ["throttled", { details: { operation: "signIn" } }, "Sign-in to @ada was tried too often"],
  ["an_action_of_a_newer_server", {}, "An action of a newer server: @ada"],
] as const)(
  "an entry of the audit log with the action %s and %j reads %j",
  (action, fields, sentence) => {
    expect(auditSentence(entry(action, fields))).toBe(sentence);
  },
);
