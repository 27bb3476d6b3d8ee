import {
  type AgentLimits,
  type AgentProfile,
  operations,
  type TurnReceipt,
} from "@parley/protocol";
import { checkWritable, visibleMessage } from "../domain/access.ts";
import { changeDisplayName } from "../domain/accounts.ts";
import { stopTurns } from "../domain/turns.ts";
import { bind, type Context } from "../operation.ts";
import { publicAccount } from "../rules/accounts.ts";
import { spendingRefusal } from "../rules/dispatch.ts";
import { badField, conflict, forbidden, notFound } from "../rules/failure.ts";
import { keySourceOf, modelOf } from "../rules/keys.ts";
import { mayControlTurn } from "../rules/permissions.ts";
import { isSandboxKey } from "../rules/sandbox.ts";
import { isoOrNull } from "../rules/time.ts";
import type { Caller } from "../security/caller.ts";
import { keyTail } from "../security/vault.ts";
import type { AgentRecord } from "../store/agents.ts";
import type { ReadTx } from "../store/store.ts";
import type { TurnRecord } from "../store/turns.ts";

const getMyAgents = bind(operations.getMyAgents, async ({ store, caller, config }) => {
  const agents = await store.read((tx) => tx.agents(caller.account.id));
  const offered = agents.filter(({ account }) => config.providers.has(account.provider ?? ""));
  return { items: offered.map((agent) => profileOf(agent, config)) };
});

const setAgentKey = bind(operations.setAgentKey, async (context, { provider, api_key }) => {
  const { security, caller, config, vault } = context;
  checkProvider(config, provider);
  if (isSandboxKey(api_key) && !config.sandbox) {
    throw badField("api_key", "is a sandbox key, and this server does not accept sandbox keys");
  }
  const binding = { owner_id: caller.account.id, provider };
  const sealed = vault.seal(api_key, binding);
  const tail = keyTail(api_key);
  await security.write(async (tx, record) => {
    await tx.setAgentKey({ ...binding, sealed, tail, at: Date.now() });
    await record("agent_key_set", keyDetails(context, provider));
  });
  return { provider, key_tail: tail };
});

const removeAgentKey = bind(operations.removeAgentKey, async (context, { provider }) => {
  const { security, caller, config } = context;
  checkProvider(config, provider);
  await security.write(async (tx, record) => {
    await tx.removeAgentKey(caller.account.id, provider);
    await record("agent_key_removed", keyDetails(context, provider));
  });
});

const testAgentKey = bind(operations.testAgentKey, async (context, { provider, api_key }) => {
  const { store, security, caller, config, keyTester, keyTests } = context;
  const agent = await store.read((tx) => ownAgent(tx, config, caller, provider));
  keyTests.take(`${caller.account.id}`);
  const tested = await keyTester.test(agent, api_key);
  const { works } = tested;
  await security.record("agent_key_tested", { ...keyDetails(context, provider), works });
  return tested;
});

const setAgentProfile = bind(operations.setAgentProfile, ({ store, caller, config }, input) =>
  store.write(async (tx) => {
    const agent = await ownAgent(tx, config, caller, input.provider);
    const { model = agent.model, instructions = agent.instructions, display_name } = input;
    await tx.setAgentProfile(agent.account.id, { model, instructions: instructions || null });
    if (display_name !== undefined) {
      await changeDisplayName(tx, agent.account, display_name, caller.account.username);
    }
    return profileOf(await ownAgent(tx, config, caller, input.provider), config);
  }),
);

const setAgentLimits = bind(operations.setAgentLimits, ({ store, caller, config }, input) =>
  store.write(async (tx) => {
    const { provider, ...given } = input;
    const agent = await ownAgent(tx, config, caller, provider);
    const changed = Object.entries(given).filter(([, value]) => value !== undefined);
    const limits: AgentLimits = { ...agent.limits, ...Object.fromEntries(changed) };
    await tx.setAgentLimits(agent.account.id, limits);
    return limits;
  }),
);

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
    tx.emit({ kind: "turns_queued" });
  }),
);

const getTurn = bind(operations.getTurn, ({ store, caller }, { message_id }) =>
  store.read(async (tx) => {
    const { message } = await visibleMessage(tx, message_id, caller);
    const turn = await tx.turnOfMessage(message);
    if (!turn) throw notFound("turn");
    return receiptOf(turn, message_id, caller);
  }),
);

export const agents = [
  getMyAgents,
  setAgentKey,
  removeAgentKey,
  testAgentKey,
  setAgentProfile,
  setAgentLimits,
  getAgentUsage,
  stopAgentTurn,
  retryAgentTurn,
  getTurn,
];

type Config = Context["config"];

function checkProvider({ providers }: Config, provider: string): void {
  if (!providers.has(provider)) {
    throw badField("provider", `must be one of ${[...providers.keys()].join(", ")}`);
  }
}

async function ownAgent(
  tx: ReadTx,
  config: Config,
  { account }: Caller,
  provider: string,
): Promise<AgentRecord> {
  checkProvider(config, provider);
  const found = (await tx.agents(account.id)).find((agent) => agent.account.provider === provider);
  if (!found) throw notFound(`agent ${account.username}:${provider}`);
  return found;
}

function profileOf(agent: AgentRecord, config: Config): AgentProfile {
  const { account, key_tail } = agent;
  return {
    provider: account.provider ?? "",
    username: account.username,
    display_name: account.display_name,
    version: account.version,
    key_configured: key_tail !== null,
    key_tail,
    key_source: keySourceOf(agent, config),
    model: modelOf(agent, config),
    instructions: agent.instructions,
    limits: agent.limits,
  };
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

function receiptOf(turn: TurnRecord, message_id: string, { account }: Caller): TurnReceipt {
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
    usage: turn.agent.owner_id === account.id ? turn.usage : null,
  };
}

/** The fields of an entry of the audit log about a provider key. */
const keyDetails = ({ caller, origin }: Context, provider: string) => ({
  account: caller.account.username,
  origin,
  provider,
});
