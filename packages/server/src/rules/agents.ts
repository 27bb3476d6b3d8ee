import type { AccountRecord } from "./accounts.ts";

/** The configured providers, by id. */
export type ProviderNames = ReadonlyMap<string, { display_name: string }>;

/** The `node` of turns that no node runs, because a program of their owner answers them. */
export const EXTERNAL_NODE = "external";

/** How long a claimed turn stays with a program that makes no calls about it. */
export const EXTERNAL_LEASE_MS = 30_000;

/** How long an agent counts as online after its program was last seen, and how long a turn waits for it. */
export const OFFLINE_MS = 10_000;

/** How long a turn waits for a program that is connected and claims no turn. */
export const UNCLAIMED_MS = 30_000;

type Owner = Pick<AccountRecord, "id" | "username" | "display_name">;

/** The provider that accounts of external agents are stored with. No id of a provider looks like it. */
export const EXTERNAL = "@external";

type AgentAccount = Pick<AccountRecord, "username" | "provider">;

/** Whether a program of its owner answers for the agent. */
export const isExternal = ({ provider }: Pick<AgentAccount, "provider">) => provider === EXTERNAL;

/** The part of an agent's username after the colon. */
const agentNameOf = ({ username }: Pick<AgentAccount, "username">) =>
  username.slice(username.indexOf(":") + 1);

/** The username of an agent's owner. */
export const ownerNameOf = ({ username }: Pick<AgentAccount, "username">) =>
  username.slice(0, username.indexOf(":"));

/** Whether the agent is the one that everybody has for its provider. */
export const isDefaultAgent = (agent: AgentAccount) => agent.provider === agentNameOf(agent);

/** What clients see of the kind of an agent. */
export const agentIdentity = (agent: AgentAccount) => ({
  kind: isExternal(agent) ? ("external" as const) : ("model" as const),
  name: agentNameOf(agent),
  provider: isExternal(agent) ? null : agent.provider,
});

/** The account of an agent. Without a display name, it is `<owner>'s <title>`. */
export const agentOf = (
  owner: Owner,
  { name, provider, title }: { name: string; provider: string; title: string },
) => ({
  username: `${owner.username}:${name}`,
  kind: "agent" as const,
  display_name: defaultName(owner.display_name, title),
  owner_id: owner.id,
  provider,
});

const MAX_NAME_CHARACTERS = 64;

/** Cuts the owner's name if both are too long, because the title tells the owner's agents apart. */
function defaultName(owner: string, title: string): string {
  const ending = `'s ${title}`;
  const room = MAX_NAME_CHARACTERS - [...ending].length;
  return room > 0 ? [...owner].slice(0, room).join("").trimEnd() + ending : title;
}

/** The agents of a new person, one for each provider. */
export const agentsOf = (owner: Owner, providers: ProviderNames) =>
  [...providers].map(([provider, { display_name }]) =>
    agentOf(owner, { name: provider, provider, title: display_name }),
  );
