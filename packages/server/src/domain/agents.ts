import type { AgentProfile, InputOf } from "@parley/protocol";
import type { Config } from "../config/config.ts";
import {
  agentIdentity,
  agentOf,
  EXTERNAL,
  isDefaultAgent,
  isExternal,
  OFFLINE_MS,
} from "../rules/agents.ts";
import { badField, conflict, forbidden, noAccounts, notFound } from "../rules/failure.ts";
import { keySourceOf, modelOf } from "../rules/keys.ts";
import type { Caller } from "../security/caller.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { AgentRecord } from "../store/agents.ts";
import type { ReadTx, WriteTx } from "../store/store.ts";
import { announceOwn, changeDisplayName } from "./accounts.ts";
import { visibleAccount } from "./policies.ts";
import { lockActive } from "./sessions.ts";

/** Agents that a person may create, besides the default ones. */
const MAX_CREATED_AGENTS = 20;

/** An agent by one of two names: a provider stands for its default agent. */
export interface AgentChoice {
  readonly provider?: string | undefined;
  readonly agent_username?: string | undefined;
}

/** A call of somebody about their agents. */
interface OwnerCall {
  readonly config: Config;
  readonly caller: Caller;
}

/**
 * The account of an agent of the caller. Throws if it does not exist, is deleted or cannot be looked up
 * (404), is no agent (400) or not the caller's (403).
 */
export async function ownAgentAccount(tx: ReadTx, { config, caller }: OwnerCall, username: string) {
  const { account } = caller;
  const agent = await visibleAccount(tx, config, account, username, "agent");
  if (agent.erased_at !== null) throw noAccounts("agent", username);
  if (agent.kind !== "agent" || agent.provider === null) {
    throw badField("agent_username", "is not an agent");
  }
  if (agent.owner_id !== account.id) throw forbidden("only the agent's owner may do this");
  return agent;
}

/** The chosen agent of the caller. Throws as `ownAgentAccount` does, and if there is no such provider (400). */
export async function ownAgent(
  tx: ReadTx,
  call: OwnerCall,
  { provider = "", agent_username }: AgentChoice,
): Promise<AgentRecord> {
  if (agent_username === undefined) checkProvider(call.config, provider);
  const name = agent_username ?? `${call.caller.account.username}:${provider}`;
  const account = await ownAgentAccount(tx, call, name);
  // An agent that its owner gave the name of a provider may have another provider.
  if (agent_username === undefined && !isDefaultAgent(account)) {
    throw notFound(`default agent of ${provider}`);
  }
  const agent = await tx.agent(account.id);
  if (!agent) throw noAccounts("agent", account.username);
  return agent;
}

/** As `ownAgent`, of a model. Throws (400) for an external agent, too. */
export async function ownModelAgent(tx: ReadTx, call: OwnerCall, choice: AgentChoice) {
  const agent = await ownAgent(tx, call, choice);
  checkModelAgent(call.config, agent.account);
  return agent;
}

/** The provider whose key the chosen agent uses. Throws (400) if it has none that is offered. */
export async function keyProvider(
  tx: ReadTx,
  call: OwnerCall,
  { provider, agent_username = "" }: AgentChoice,
): Promise<string> {
  if (provider !== undefined) {
    checkProvider(call.config, provider);
    return provider;
  }
  const account = await ownAgentAccount(tx, call, agent_username);
  return checkModelAgent(call.config, account).provider ?? "";
}

/** Throws (400) for an external agent, and for one whose provider is no longer offered. */
function checkModelAgent({ providers }: Config, account: AccountRecord): AccountRecord {
  if (isExternal(account))
    throw badField("agent_username", "is an external agent: it has no provider");
  if (!providers.has(account.provider ?? "")) {
    throw badField("agent_username", "has a provider that is no longer offered");
  }
  return account;
}

function checkProvider({ providers }: Config, provider: string): void {
  if (!providers.has(provider)) {
    throw badField("provider", `must be one of ${[...providers.keys()].join(", ")}`);
  }
}

/** The agents that the owner sees: default ones only while their provider is offered. */
export const shownAgents = (agents: readonly AgentRecord[], { providers }: Config): AgentRecord[] =>
  agents.filter(({ account }) => !isDefaultAgent(account) || providers.has(account.provider ?? ""));

/** Whether a program is connected for an external agent; null for a model. */
export async function isOnline(tx: ReadTx, { account }: AgentRecord): Promise<boolean | null> {
  if (!isExternal(account)) return null;
  return (await tx.agentsSeen([account.id], OFFLINE_MS)).length > 0;
}

export function agentProfile(
  agent: AgentRecord,
  config: Config,
  { tools, online }: Pick<AgentProfile, "tools" | "online">,
): AgentProfile {
  const { account, key_tail } = agent;
  return {
    ...agentIdentity(account),
    username: account.username,
    display_name: account.display_name,
    version: account.version,
    key_configured: key_tail !== null,
    key_tail,
    key_source: keySourceOf(agent, config),
    model: modelOf(agent, config),
    instructions: agent.instructions,
    limits: agent.limits,
    tools,
    online,
  };
}

/** Creates an agent and announces it to its owner's clients. Throws (409) if the name is taken. */
export async function createAgent(
  tx: WriteTx,
  { config, caller }: OwnerCall,
  input: InputOf<"createAgent">,
): Promise<AccountRecord> {
  const { account: owner } = caller;
  const { name, model = null, instructions = null } = input;
  const provider = providerOfNew(config, input);
  // One after another: otherwise two calls could both create the last agent.
  await lockActive(tx, owner);
  const created = (await tx.agents(owner.id)).filter(({ account }) => !isDefaultAgent(account));
  if (created.length >= MAX_CREATED_AGENTS) {
    throw conflict(`you have ${created.length} agents already; delete one first`);
  }
  const account = agentOf(owner, { name, provider, title: name });
  const { display_name = account.display_name } = input;
  const made = await tx.insertAccount({ ...account, display_name, at: Date.now() });
  if (!made) throw conflict(`${account.username} is taken, or was the name of a deleted agent`);
  await tx.setAgentProfile(made.id, { model, instructions: instructions || null });
  // A new version of the account: clients that were away find it among the renamed ones.
  await changeDisplayName(tx, made, display_name, owner.username);
  return made;
}

/** Tells the clients of an agent's owner that its settings have changed. */
export const announceSettings = (tx: WriteTx, { account, owner }: AgentRecord) =>
  announceOwn(tx, account, owner);

function providerOfNew(config: Config, { kind, provider }: InputOf<"createAgent">): string {
  if (kind === "external") {
    if (provider !== undefined) throw badField("provider", "is for models only");
    return EXTERNAL;
  }
  if (provider === undefined) throw badField("provider", "is required for a model");
  checkProvider(config, provider);
  return provider;
}

/** Moves an agent to another provider. Throws if it is unknown (400) or the agent must keep its own. */
export async function changeProvider(
  tx: WriteTx,
  config: Config,
  { account }: AgentRecord,
  provider: string,
): Promise<void> {
  if (provider === account.provider) return;
  if (isExternal(account)) throw badField("provider", "is for models only");
  checkProvider(config, provider);
  if (isDefaultAgent(account)) throw conflict("the default agent of a provider keeps its provider");
  await tx.setAgentProvider(account.id, provider, Date.now());
}
