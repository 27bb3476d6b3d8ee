import { type InputOf, operations } from "@parley/protocol";
import { createResource } from "../calls/bind.ts";
import type { Context } from "../calls/needs.ts";
import { joinedConversation, joinedGroup } from "../domain/access.ts";
import { ownAgentAccount } from "../domain/agents.ts";
import { addMembers, announceChanges, checkGroupSize, removeMember } from "../domain/groups.ts";
import { checkMayAdd, policyOf } from "../domain/policies.ts";
import { stopApprovedCalls } from "../domain/tool-calls.ts";
import { stopTurns } from "../domain/turns.ts";
import { publicAccount } from "../rules/accounts.ts";
import { notFound } from "../rules/failure.ts";
import type { Caller } from "../security/caller.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { ConversationAgent } from "../store/agents.ts";
import type { ConversationRecord } from "../store/conversations.ts";
import type { NewChange } from "../store/group-changes.ts";
import type { ReadTx, WriteTx } from "../store/store.ts";

export const groups = createResource<"config">();

groups.read(operations.getGroupAgents, async (tx, { caller }, { chat_id }) => {
  const group = await joinedGroup(tx, chat_id, caller);
  const agents = await tx.conversationAgents(group.id);
  return {
    items: agents.map(({ account, always_on }) => ({ agent: publicAccount(account), always_on })),
  };
});

groups.write(operations.addGroupAgent, async (tx, context, input) => {
  const { caller, config } = context;
  const { always_on } = input;
  const { group, agent, member } = await groupAgent(tx, context, input);
  if (member) return setMode(tx, group, member, always_on ?? member.always_on, caller);
  await checkMayAdd(tx, await policyOf(tx, config, caller.account), caller.account, [agent]);
  checkGroupSize(group.participant_count + 1, config.limits, "agent_username");
  const mode = always_on ? [modeChange(agent, true)] : [];
  await addMembers(tx, group, [agent], caller.account, mode);
  if (always_on) await tx.setAlwaysOn(group.id, agent.id, true);
});

groups.write(operations.removeGroupAgent, async (tx, context, input) => {
  const { group, agent } = await presentAgent(tx, context, input);
  await removeMember(tx, group, await tx.members(group.id), agent, context.caller.account);
});

groups.write(operations.setGroupAgentMode, async (tx, context, input) => {
  const { group, member } = await presentAgent(tx, context, input);
  await setMode(tx, group, member, input.always_on, context.caller);
});

groups.write(operations.stopChatAgents, async (tx, { caller }, { chat_id }) => {
  const { id } = await joinedConversation(tx, chat_id, caller);
  const agents = (await tx.conversationAgents(id)).map(({ account }) => account);
  await stopApprovedCalls(tx, id, agents);
  return stopTurns(tx, await tx.openTurns(id));
});

type Named = InputOf<"removeGroupAgent">;

/** A group, an agent of the caller and, if it is in the group, how it takes part. */
async function groupAgent(tx: ReadTx, context: Context<"config">, named: Named) {
  const group = await joinedGroup(tx, named.chat_id, context.caller);
  const agent = await ownAgentAccount(tx, context, named.agent_username);
  const agents = await tx.conversationAgents(group.id);
  return { group, agent, member: agents.find(({ account }) => account.id === agent.id) };
}

/** As `groupAgent`, but throws if the agent is not in the group (404). */
async function presentAgent(tx: ReadTx, context: Context<"config">, named: Named) {
  const { group, agent, member } = await groupAgent(tx, context, named);
  if (!member) throw notFound(`agent ${agent.username} in this group`);
  return { group, agent, member };
}

async function setMode(
  tx: WriteTx,
  group: ConversationRecord,
  { account, always_on: before }: ConversationAgent,
  always_on: boolean,
  caller: Caller,
): Promise<void> {
  if (always_on === before) return;
  await tx.setAlwaysOn(group.id, account.id, always_on);
  await announceChanges(tx, group, caller.account, [modeChange(account, always_on)]);
}

const modeChange = (agent: AccountRecord, always_on: boolean): NewChange => ({
  kind: "mode_changed",
  subjects: [agent],
  always_on,
});
