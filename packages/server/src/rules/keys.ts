import type { AgentProfile } from "@parley/protocol";

/** Who pays for an agent's turns. */
export type KeySource = NonNullable<AgentProfile["key_source"]>;

interface AgentSettings {
  readonly account: { readonly provider: string | null };
  readonly sealed_key: string | null;
  readonly model: string | null;
}

interface Offer {
  readonly providers: ReadonlyMap<string, { readonly model: string }>;
  readonly operatorKeys: ReadonlyMap<string, string>;
}

/** Whose key an agent uses: the owner's has precedence. Null if there is none. */
export function keySourceOf(
  { account, sealed_key }: Pick<AgentSettings, "account" | "sealed_key">,
  { operatorKeys }: Pick<Offer, "operatorKeys">,
): KeySource | null {
  if (sealed_key !== null) return "own";
  return operatorKeys.has(account.provider ?? "") ? "operator" : null;
}

/** The model that an agent asks. Its owner chooses it, except at the operator's expense. */
export function modelOf(agent: AgentSettings, offer: Offer): string {
  const offered = offer.providers.get(agent.account.provider ?? "")?.model ?? "";
  return keySourceOf(agent, offer) === "operator" ? offered : (agent.model ?? offered);
}
