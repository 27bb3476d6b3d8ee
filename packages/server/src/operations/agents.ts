import {
  type AgentLimits,
  type AgentProfile,
  type InputOf,
  operations,
  type TurnReceipt,
} from "@parley/protocol";
import { checkWritable, visibleMessage } from "../domain/access.ts";
import { changeDisplayName } from "../domain/accounts.ts";
import {
  type AgentChoice,
  agentProfile,
  announceSettings,
  changeProvider,
  checkModelAgent,
  createAgent as insertAgent,
  isOnline,
  keyProvider,
  ownAgent,
  ownAgentAccount,
  shownAgents,
} from "../domain/agents.ts";
import { eraseAgent, finishErasure } from "../domain/erasure.ts";
import { lockActive } from "../domain/sessions.ts";
import { grantedFingerprint, grantsShownTo, toolsOfServers } from "../domain/tools.ts";
import { stopTurns, turnsQueued } from "../domain/turns.ts";
import { bind, type Context } from "../operation.ts";
import { publicAccount } from "../rules/accounts.ts";
import { isDefaultAgent, isExternal } from "../rules/agents.ts";
import { spendingRefusal } from "../rules/dispatch.ts";
import { badField, conflict, forbidden, notFound } from "../rules/failure.ts";
import { mayControlTurn } from "../rules/permissions.ts";
import { isSandboxKey } from "../rules/sandbox.ts";
import { isoOrNull } from "../rules/time.ts";
import { shownToolCall } from "../rules/tool-calls.ts";
import { type Caller, tokenOf } from "../security/caller.ts";
import { keyTail } from "../security/vault.ts";
import type { AgentRecord } from "../store/agents.ts";
import type { ReadTx, WriteTx } from "../store/store.ts";
import type { ToolCallRecord } from "../store/tool-calls.ts";
import type { TurnRecord } from "../store/turns.ts";

const getMyAgents = bind(operations.getMyAgents, (context) =>
  context.store.read(async (tx) => {
    const { caller, config } = context;
    const items: AgentProfile[] = [];
    const grantsOf = grantsShown(tx, context);
    for (const agent of shownAgents(await tx.agents(caller.account.id), config)) {
      items.push(await profileOf(tx, context, agent, grantsOf));
    }
    return { items };
  }),
);

const createAgent = bind(operations.createAgent, (context, input) => {
  const { store, caller, config, accountCreations } = context;
  accountCreations.take(`${caller.account.id}`);
  return store.write(async (tx) => {
    const { username } = await insertAgent(tx, config, caller, input);
    return profile(tx, context, { agent_username: username });
  });
});

const updateAgent = bind(operations.updateAgent, (context, { provider, ...input }) =>
  context.store.write(async (tx) => {
    const { caller, config } = context;
    await lockActive(tx, caller.account);
    const agent = await ownAgent(tx, config, caller, input);
    const isMoved = provider !== undefined && provider !== agent.account.provider;
    if (isMoved) await changeProvider(tx, config, agent, provider);
    await changeProfile(tx, caller, isMoved ? { ...agent, model: null } : agent, input);
    return profile(tx, context, input);
  }),
);

const deleteAgent = bind(operations.deleteAgent, async ({ store, caller }, { agent_username }) => {
  const agent = await store.write(async (tx) => {
    await lockActive(tx, caller.account);
    const found = await ownAgentAccount(tx, agent_username, caller);
    if (isDefaultAgent(found)) throw conflict("the default agent of a provider cannot be deleted");
    await eraseAgent(tx, found, caller.account);
    return found;
  });
  await finishErasure(store, { account: agent, messages: false });
});

const setAgentKey = bind(operations.setAgentKey, async (context, { api_key, ...choice }) => {
  const { audit, caller, config, vault } = context;
  const provider = await keyProviderOf(context, choice);
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

const removeAgentKey = bind(operations.removeAgentKey, async (context, choice) => {
  const { audit, caller } = context;
  const provider = await keyProviderOf(context, choice);
  await audit.write(async (tx, record) => {
    await tx.removeAgentKey(caller.account.id, provider);
    await announceKey(tx, caller, provider);
    await record("agent_key_removed", keyDetails(context, provider));
  });
});

const testAgentKey = bind(operations.testAgentKey, async (context, { api_key, ...choice }) => {
  const { store, audit, caller, config, keyTester, keyTests } = context;
  const agent = await store.read((tx) => ownAgent(tx, config, caller, choice));
  checkModelAgent(config, agent.account);
  keyTests.take(`${caller.account.id}`);
  const tested = await keyTester.test(agent, api_key);
  const { works } = tested;
  const details = keyDetails(context, agent.account.provider ?? "");
  await audit.record("agent_key_tested", { ...details, works });
  return tested;
});

const getAgentModels = bind(operations.getAgentModels, async (context, choice) => {
  const { store, caller, config, modelLists, keyTests } = context;
  const agent = await store.read((tx) => ownAgent(tx, config, caller, choice));
  checkModelAgent(config, agent.account);
  return modelLists.of(agent, () => keyTests.take(`${caller.account.id}`));
});

const setAgentProfile = bind(operations.setAgentProfile, (context, input) =>
  context.store.write(async (tx) => {
    const { caller, config } = context;
    await lockActive(tx, caller.account);
    await changeProfile(tx, caller, await ownAgent(tx, config, caller, input), input);
    return profile(tx, context, input);
  }),
);

const setAgentLimits = bind(operations.setAgentLimits, ({ store, caller, config }, input) =>
  store.write(async (tx) => {
    const { provider, agent_username, ...given } = input;
    await lockActive(tx, caller.account);
    const agent = await ownAgent(tx, config, caller, { provider, agent_username });
    const changed = Object.entries(given).filter(([, value]) => value !== undefined);
    const limits: AgentLimits = { ...agent.limits, ...Object.fromEntries(changed) };
    await tx.setAgentLimits(agent.account.id, limits);
    announceSettings(tx, agent);
    return limits;
  }),
);

const setAgentTools = bind(operations.setAgentTools, async (context, input) => {
  await context.toolServers.contacted(input.grants.map(({ server_id }) => server_id));
  return context.audit.write(async (tx, record) => {
    const { caller, config, origin, toolServers } = context;
    await lockActive(tx, caller.account);
    const agent = await ownAgent(tx, config, caller, input);
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
    announceSettings(tx, agent);
    const { username: account } = caller.account;
    const details = { account, origin, agent: agent.account.username, ...tokenOf(caller) };
    await record("agent_tools_set", details);
    return profileOf(tx, context, agent);
  });
});

const getAgentUsage = bind(operations.getAgentUsage, async ({ store, caller }, input) => {
  const since = input.since ? Date.parse(input.since) : null;
  const until = input.until ? Date.parse(input.until) : null;
  return { items: await store.read((tx) => tx.usage(caller.account.id, since, until)) };
});

const stopAgentTurn = bind(operations.stopAgentTurn, ({ store, caller }, { message_id }) =>
  store.write(async (tx) => {
    const { turn } = await controlledTurn(tx, message_id, caller);
    if (turn.status !== "running") throw conflict("the turn has already finished");
    await stopTurns(tx, [turn]);
  }),
);

const retryAgentTurn = bind(operations.retryAgentTurn, ({ store, caller }, { message_id }) =>
  store.write(async (tx) => {
    const { turn, conversation } = await controlledTurn(tx, message_id, caller);
    checkWritable(conversation);
    if (turn.status === "running") throw conflict("the turn is still running");
    if (turn.trigger_deleted) throw notFound("the message that triggered the turn");
    const agents = await tx.conversationAgents(turn.conversation_id);
    const member = agents.find(({ account }) => account.id === turn.agent.id);
    if (!member) throw conflict("the agent is no longer in this conversation");
    const open = await tx.openTurns(turn.conversation_id);
    const waiting = open.filter(
      ({ agent, status }) => agent.id === turn.agent.id && status === "waiting",
    );
    if (waiting.some((each) => !each.open_ended && each.trigger_uuid === turn.trigger_uuid)) {
      throw conflict("a retry of this turn is already waiting");
    }
    if (waiting.length >= member.waiting_turns) {
      throw conflict("too many turns of this agent are waiting in this conversation");
    }
    await tx.queueTurn({
      agent_id: turn.agent.id,
      conversation_id: turn.conversation_id,
      trigger_uuid: turn.trigger_uuid,
      open_ended: false,
      refusal: spendingRefusal(member, caller.account),
      most_waiting: member.waiting_turns,
      at: Date.now(),
    });
    tx.emit(turnsQueued([turn.agent]));
  }),
);

const getTurn = bind(operations.getTurn, ({ store, caller }, { message_id }) =>
  store.read(async (tx) => {
    const { message } = await visibleMessage(tx, message_id, caller);
    const turn = await tx.turnOfMessage(message);
    if (!turn) throw notFound("turn");
    return receiptOf(turn, await tx.toolCallsOf([message.id]), message_id, caller);
  }),
);

export const agents = [
  getMyAgents,
  createAgent,
  updateAgent,
  deleteAgent,
  setAgentKey,
  removeAgentKey,
  testAgentKey,
  getAgentModels,
  setAgentProfile,
  setAgentLimits,
  setAgentTools,
  getAgentUsage,
  stopAgentTurn,
  retryAgentTurn,
  getTurn,
];

const keyProviderOf = ({ store, caller, config }: Context, choice: AgentChoice) =>
  store.read((tx) => keyProvider(tx, config, caller, choice));

/** One agent stands for all that use the key: clients fetch their agents together. */
async function announceKey(tx: WriteTx, { account }: Caller, provider: string): Promise<void> {
  const agents = await tx.agents(account.id);
  const agent = agents.find((each) => each.account.provider === provider);
  if (agent) announceSettings(tx, agent);
}

/** The agent as it is now. */
const profile = async (tx: ReadTx, context: Context, choice: AgentChoice) =>
  profileOf(tx, context, await ownAgent(tx, context.config, context.caller, choice));

const profileOf = async (
  tx: ReadTx,
  context: Context,
  agent: AgentRecord,
  grantsOf = grantsShown(tx, context),
) =>
  agentProfile(agent, context.config, {
    tools: await grantsOf(agent),
    online: await isOnline(tx, agent),
  });

const grantsShown = (tx: ReadTx, { caller, toolServers }: Context) =>
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
  await changeDisplayName(tx, agent.account, display_name, owner.username);
}

/** The turn of an agent's message, if the caller may stop and retry it. */
async function controlledTurn(tx: ReadTx, messageId: string, caller: Caller) {
  const { message, conversation } = await visibleMessage(tx, messageId, caller);
  const turn = await tx.turnOfMessage(message);
  if (!turn) throw notFound("turn");
  if (!mayControlTurn(caller.account, turn, conversation)) {
    throw forbidden(
      "only the agent's owner, the person who triggered it or the group's admin may do this",
    );
  }
  return { turn, conversation };
}

function receiptOf(
  turn: TurnRecord,
  calls: readonly ToolCallRecord[],
  message_id: string,
  { account }: Caller,
): TurnReceipt {
  const isOwner = turn.agent.owner_id === account.id;
  const { started_at, first_token_at, finished_at } = turn;
  const since = (moment: number | null) =>
    moment === null || started_at === null ? null : moment - started_at;
  return {
    message_id,
    conversation_id: turn.conversation_uuid,
    agent: publicAccount(turn.agent),
    triggered_by: turn.trigger_uuid,
    model: turn.model,
    status: turn.status === "waiting" || turn.status === "running" ? "streaming" : turn.status,
    error: turn.error,
    context_ids: [...turn.context_ids],
    tries: turn.tries,
    started_at: isoOrNull(started_at ?? 0) ?? "",
    finished_at: isoOrNull(finished_at),
    first_token_ms: since(first_token_at),
    duration_ms: since(finished_at),
    usage: isOwner ? turn.usage : null,
    rounds: turn.rounds.map(({ duration_ms, usage }, round) => ({
      duration_ms,
      usage: isOwner ? usage : null,
      calls: calls.filter((call) => call.round === round).map(receiptCall),
    })),
  };
}

const receiptCall = (call: ToolCallRecord) => ({
  ...shownToolCall(call),
  duration_ms:
    call.started_at === null || call.finished_at === null
      ? null
      : call.finished_at - call.started_at,
});

/** The fields of an entry of the audit log about a provider key. */
const keyDetails = ({ caller, origin }: Context, provider: string) => ({
  account: caller.account.username,
  origin,
  provider,
});
