/** The configured providers, by id. */
export type ProviderNames = ReadonlyMap<string, { display_name: string }>;

interface Owner {
  readonly id: number;
  readonly username: string;
  readonly display_name: string;
}

/** The agents of a new person, one for each provider. */
export const agentsOf = (owner: Owner, providers: ProviderNames) =>
  [...providers].map(([provider, { display_name }]) => ({
    username: `${owner.username}:${provider}`,
    kind: "agent" as const,
    display_name: [...`${owner.display_name}'s ${display_name}`].slice(0, 64).join(""),
    owner_id: owner.id,
    provider,
  }));
