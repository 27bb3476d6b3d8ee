import { type Policy, type PolicyOverrides, UNRESTRICTED } from "@parley/protocol";

/** What PARLEY_POLICY sets. */
export interface ServerPolicy {
  /** `product`: people whom `upsertUsers` created. `everyone`: also those who signed up themselves. */
  readonly applies_to: "product" | "everyone";
  readonly overrides: PolicyOverrides;
}

/** What decides on the policy of a person. */
export interface PolicySource {
  /** Whether a product created the account. */
  readonly is_product: boolean;
  /** What the product has set for this person. */
  readonly policy: PolicyOverrides | null;
}

/** The person's own fields, then those of the server, then everything is allowed. */
export const policyInForce = (
  { applies_to, overrides }: ServerPolicy,
  { is_product, policy }: PolicySource,
): Policy => ({
  ...UNRESTRICTED,
  ...((is_product || applies_to === "everyone") && overrides),
  ...policy,
});

/** The fields that allow or forbid operations whatever their input names. */
export type PolicySwitch = {
  [Field in keyof Policy]: Policy[Field] extends boolean ? Field : never;
}[keyof Policy];

/** What people are told whose policy forbids something. */
export const refusals: Readonly<Record<PolicySwitch, string>> = {
  rename: "you may not change your name or picture",
  agents: "you may not change agents, keys and tools",
  files: "you may not send files",
  hooks: "you may not use incoming hooks",
  delete_account: "you may not delete your account",
};

export const isSwitch = (field: keyof Policy): field is PolicySwitch =>
  Object.hasOwn(refusals, field);
