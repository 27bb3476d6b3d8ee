import type { Turn } from "@parley/protocol";

type Usage = NonNullable<Turn["usage"]>;

/** What calls of a model used together; null if nothing is known of one of them, or there are none. */
export function totalUsage(rounds: readonly { readonly usage: Turn["usage"] }[]): Turn["usage"] {
  const known = rounds.flatMap(({ usage }) => usage ?? []);
  if (known.length === 0 || known.length < rounds.length) return null;
  return known.reduce(addUsage);
}

export const addUsage = (one: Usage, other: Usage): Usage => ({
  input_tokens: one.input_tokens + other.input_tokens,
  output_tokens: one.output_tokens + other.output_tokens,
});

export const tokensOf = (usage: Turn["usage"]): number =>
  usage === null ? 0 : usage.input_tokens + usage.output_tokens;
