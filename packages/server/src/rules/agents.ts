/** Which agents a person owns. */
export type ProviderNames = ReadonlyMap<string, { display_name: string }>;

interface Owner {
  readonly id: number;
  readonly username: string;
  readonly display_name: string;
}

export const agentsOf = (owner: Owner, providers: ProviderNames) =>
  [...providers].map(([provider, { display_name }]) => ({
    username: `${owner.username}:${provider}`,
    kind: "agent" as const,
    display_name: [...`${owner.display_name}'s ${display_name}`].slice(0, 64).join(""),
    owner_id: owner.id,
    provider,
  }));
