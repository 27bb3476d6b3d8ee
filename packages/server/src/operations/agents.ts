import { type AgentLimits, type AgentProfile, type InputOf, operations } from "@parley/protocol";
import { createResource } from "../calls/bind.ts";
import type { Context } from "../calls/needs.ts";
import { take } from "../calls/throttles.ts";
import { changeDisplayName } from "../domain/accounts.ts";
import {
  type AgentChoice,
  agentProfile,
  announceSettings,
  changeProvider,
  createAgent,
  isOnline,
  keyProvider,
  ownAgent,
  ownAgentAccount,
  ownModelAgent,
  shownAgents,
} from "../domain/agents.ts";
import { eraseAgent, finishErasure } from "../domain/erasures.ts";
import { lockActive } from "../domain/sessions.ts";
import { grantedFingerprint, grantsShownTo, toolsOfServers } from "../domain/tools.ts";
import { isDefaultAgent, isExternal } from "../rules/agents.ts";
import { badField, conflict } from "../rules/failure.ts";
import { isSandboxKey } from "../rules/sandbox.ts";
import type { Caller } from "../security/caller.ts";
import { ownDetails } from "../security/own-password.ts";
import { keyTail } from "../security/vault.ts";
import type { AgentRecord } from "../store/agents.ts";
import type { ReadTx, WriteTx } from "../store/store.ts";

type Needs =
  | "config"
  | "store"
  | "vault"
  | "keyTester"
  | "modelLists"
  | "toolServers"
  | "audit"
  | "throttles";
export const agents = createResource<Needs>();

agents.read(operations.getMyAgents, async (tx, context) => {
  const { caller, config } = context;
  const items: AgentProfile[] = [];
  const grantsOf = grantsShown(tx, context);
  for (const agent of shownAgents(await tx.agents(caller.account.id), config)) {
    items.push(await profileOf(tx, context, agent, grantsOf));
  }
  return { items };
});

agents.write(operations.createAgent, async (tx, context, input) => {
  const { username } = await createAgent(tx, context, input);
  return profile(tx, context, { agent_username: username });
});

agents.write(operations.updateAgent, async (tx, context, { provider, ...input }) => {
  const { caller, config } = context;
  await lockActive(tx, caller.account);
  const agent = await ownAgent(tx, context, input);
  const isMoved = provider !== undefined && provider !== agent.account.provider;
  if (isMoved) await changeProvider(tx, config, agent, provider);
  const { model = isMoved ? null : undefined } = input;
  await changeProfile(tx, caller, agent, { ...input, model });
  return profile(tx, context, input);
});

agents.handle(operations.deleteAgent, async (context, { agent_username }) => {
  const { store, caller } = context;
  const agent = await store.write(async (tx) => {
    await lockActive(tx, caller.account);
    const found = await ownAgentAccount(tx, context, agent_username);
    if (isDefaultAgent(found)) throw conflict("the default agent of a provider cannot be deleted");
    await eraseAgent(tx, found, caller.account);
    return found;
  });
  await finishErasure(store, { account: agent, messages: false });
});

agents.handle(operations.setAgentKey, async (context, { api_key, ...choice }) => {
  const { store, audit, caller, config, vault } = context;
  const provider = await store.read((tx) => keyProvider(tx, context, choice));
  if (isSandboxKey(api_key) && !config.sandbox) {
    throw badField("api_key", "is a sandbox key, and this server does not accept sandbox keys");
  }
  const binding = { owner_id: caller.account.id, provider };
  const sealed = vault.seal(api_key, binding);
  const tail = keyTail(api_key);
  await audit.write(async (tx, record) => {
    await lockActive(tx, caller.account);
    await tx.setAgentKey({ ...binding, sealed, tail, at: Date.now() });
    await announceKey(tx, caller, provider);
    await record("agent_key_set", keyDetails(context, provider));
  });
  return { provider, key_tail: tail };
});

agents.handle(operations.removeAgentKey, async (context, choice) => {
  const { store, audit, caller } = context;
  const provider = await store.read((tx) => keyProvider(tx, context, choice));
  await audit.write(async (tx, record) => {
    await tx.removeAgentKey(caller.account.id, provider);
    await announceKey(tx, caller, provider);
    await record("agent_key_removed", keyDetails(context, provider));
  });
});

agents.handle(operations.testAgentKey, async (context, { api_key, ...choice }) => {
  const { store, audit, keyTester } = context;
  const agent = await store.read((tx) => ownModelAgent(tx, context, choice));
  const tested = await keyTester.test(agent, api_key);
  const { works } = tested;
  const details = keyDetails(context, agent.account.provider ?? "");
  await audit.record("agent_key_tested", { ...details, works });
  return tested;
});

agents.handle(operations.getAgentModels, async (context, choice) => {
  const { store, modelLists } = context;
  const agent = await store.read((tx) => ownModelAgent(tx, context, choice));
  return modelLists.of(agent, () => take(context, "key_tests"));
});

agents.write(operations.setAgentProfile, async (tx, context, input) => {
  const { caller } = context;
  await lockActive(tx, caller.account);
  await changeProfile(tx, caller, await ownAgent(tx, context, input), input);
  return profile(tx, context, input);
});

agents.write(operations.setAgentLimits, async (tx, context, input) => {
  const { provider, agent_username, ...given } = input;
  await lockActive(tx, context.caller.account);
  const agent = await ownAgent(tx, context, { provider, agent_username });
  const changed = Object.entries(given).filter(([, value]) => value !== undefined);
  const limits: AgentLimits = { ...agent.limits, ...Object.fromEntries(changed) };
  await tx.setAgentLimits(agent.account.id, limits);
  await announceSettings(tx, agent);
  return limits;
});

agents.handle(operations.setAgentTools, async (context, input) => {
  await context.toolServers.contacted(input.grants.map(({ server_id }) => server_id));
  return context.audit.write(async (tx, record) => {
    const { caller, toolServers } = context;
    await lockActive(tx, caller.account);
    const agent = await ownAgent(tx, context, input);
    if (isExternal(agent.account)) {
      throw badField("agent_username", "is an external agent: its program has tools of its own");
    }
    const offered = await toolsOfServers(tx, caller.account.id, toolServers.operatorTools());
    const current = await tx.toolGrants(agent.account.id);
    const grants = input.grants.map((grant, place) => {
      const fingerprint = grantedFingerprint(grant, offered, current);
      if (typeof fingerprint === "string") return { ...grant, fingerprint };
      throw badField(`grants.${place}`, fingerprint.problem);
    });
    const names = new Set(grants.map(({ server_id, tool }) => `${server_id} ${tool}`));
    if (names.size < grants.length) throw badField("grants", "must not name a tool twice");
    await tx.setToolGrants(agent.account.id, grants);
    await announceSettings(tx, agent);
    const details = { ...ownDetails(context), agent: agent.account.username };
    await record("agent_tools_set", details);
    return profileOf(tx, context, agent);
  });
});

agents.read(operations.getAgentUsage, async (tx, { caller }, { since, until }) => {
  const timeOf = (text: string | undefined) => (text ? Date.parse(text) : null);
  return { items: await tx.usage(caller.account.id, timeOf(since), timeOf(until)) };
});

/** One agent stands for all that use the key: clients fetch their agents together. */
async function announceKey(tx: WriteTx, { account }: Caller, provider: string): Promise<void> {
  const agents = await tx.agents(account.id);
  const agent = agents.find((each) => each.account.provider === provider);
  if (agent) await announceSettings(tx, agent);
}

/** The agent as it is now. */
const profile = async (tx: ReadTx, context: Context<Needs>, choice: AgentChoice) =>
  profileOf(tx, context, await ownAgent(tx, context, choice));

const profileOf = async (
  tx: ReadTx,
  context: Context<Needs>,
  agent: AgentRecord,
  grantsOf = grantsShown(tx, context),
) =>
  agentProfile(agent, context.config, {
    tools: await grantsOf(agent),
    online: await isOnline(tx, agent),
  });

const grantsShown = (tx: ReadTx, { caller, toolServers }: Context<Needs>) =>
  grantsShownTo(tx, caller.account.id, toolServers.operatorTools());

async function changeProfile(
  tx: WriteTx,
  { account: owner }: Caller,
  agent: AgentRecord,
  input: Pick<InputOf<"updateAgent">, "display_name" | "model" | "instructions">,
): Promise<void> {
  const { model = agent.model, instructions = agent.instructions, display_name } = input;
  await tx.setAgentProfile(agent.account.id, { model, instructions: instructions || null });
  if (display_name === undefined) return announceSettings(tx, agent);
  const renamed = await changeDisplayName(tx, agent.account, display_name, owner.username);
  // Everybody is told the name, and the owner alone that there are other settings too.
  const hasSettings = input.model !== undefined || input.instructions !== undefined;
  const account = { ...agent.account, ...renamed };
  if (hasSettings) await announceSettings(tx, { ...agent, account });
}

const keyDetails = ({ caller, origin }: Context<Needs>, provider: string) => ({
  account: caller.account.username,
  origin,
  provider,
});
