/** What a throttle allows. A limit is one of `getLimits`, per hour; zero there means no limit. */
type Allowance =
  | { readonly limit: string }
  | { readonly burst: number; readonly seconds: number }
  /** Failed attempts: how many are free, and how long further ones make the key wait at most. */
  | { readonly failures: number; readonly longestSeconds: number };

type Declared = Allowance & {
  readonly per: "account" | "network";
  /** What it counts, in the plural. */
  readonly counts: string;
};

/** What few operations do is limited by throttles of its own, besides the rate of all calls. */
export const throttles = {
  sign_ups: { per: "network", counts: "sign-ups", limit: "signups_per_hour" },
  reports: { per: "account", counts: "reports", limit: "reports_per_hour" },
  strangers: {
    per: "account",
    counts: "people who are added to groups and do not know who adds them",
    limit: "strangers_per_hour",
  },
  export_links: { per: "account", counts: "links to own data", limit: "exports_per_hour" },
  /** Their names stay taken. */
  account_creations: {
    per: "account",
    counts: "new agents and incoming hooks",
    limit: "hooks_per_hour",
  },
  /** Enough to correct a typo, too few to probe stolen keys. */
  key_tests: { per: "account", counts: "requests to providers with a key", burst: 10, seconds: 60 },
  tool_contacts: { per: "account", counts: "contacts with tool servers", burst: 30, seconds: 60 },
  invite_codes: {
    per: "network",
    counts: "wrong invite codes",
    failures: 10,
    longestSeconds: 300,
  },
  reset_tokens: {
    per: "network",
    counts: "wrong tokens of reset links",
    failures: 10,
    longestSeconds: 300,
  },
  passwords: {
    per: "account",
    counts: "wrong passwords and codes",
    failures: 5,
    longestSeconds: 300,
  },
} as const satisfies Record<string, Declared>;

export type ThrottleName = keyof typeof throttles;

/** A throttle that an operation counts against. */
export interface Throttled {
  readonly name: ThrottleName;
  /** What of its calls counts, which its handler decides; null: each call. */
  readonly of: string | null;
}

/** What a throttle allows, as the end of a sentence. */
export function allowanceOf(name: ThrottleName): string {
  const declared: Declared = throttles[name];
  const { per } = declared;
  if ("limit" in declared) return `at most \`${declared.limit}\` per ${per}`;
  if ("burst" in declared) {
    const { burst, seconds } = declared;
    return `at most ${burst} at once per ${per}, and ${burst} in ${seconds} s`;
  }
  return `after ${declared.failures} per ${per} the next ones have to wait, longer each time, up to ${declared.longestSeconds} s`;
}
