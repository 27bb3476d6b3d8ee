import { type AgentToken, operations } from "@parley/protocol";
import { createResource } from "../calls/bind.ts";
import { ownAgentAccount } from "../domain/agents.ts";
import { lockActive, revokeTokens } from "../domain/sessions.ts";
import { isExternal } from "../rules/agents.ts";
import { badField, conflict, notFound } from "../rules/failure.ts";
import { iso, isoOrNull } from "../rules/time.ts";
import { hashToken } from "../rules/tokens.ts";
import { ownDetails } from "../security/own-password.ts";
import { newToken } from "../security/tokens.ts";
import type { AgentTokenRecord } from "../store/agent-tokens.ts";

export const agentTokens = createResource<"config">();

const MAX_TOKENS_PER_AGENT = 10;

agentTokens.audited(operations.createAgentToken, async (tx, record, context, input) => {
  const { caller } = context;
  // One after another: otherwise two calls could both create the last token.
  await lockActive(tx, caller.account);
  const agent = await ownAgentAccount(tx, context, input.agent_username);
  if (!isExternal(agent)) throw badField("agent_username", "is not an external agent");
  const existing = await tx.agentTokens(caller.account.id);
  const { length } = existing.filter(({ account }) => account.id === agent.id);
  if (length >= MAX_TOKENS_PER_AGENT) throw conflict(`the agent has ${length} tokens already`);
  const id = Bun.randomUUIDv7();
  const token = newToken("agent");
  const { name = "" } = input;
  const token_hash = hashToken(token);
  await tx.insertAgentToken({ id, token_hash, account_id: agent.id, name, at: Date.now() });
  const details = { ...ownDetails(context), agent: agent.username, agent_token: id };
  await record("agent_token_created", details);
  return { id, token };
});

agentTokens.read(operations.getAgentTokens, async (tx, { caller }) => ({
  items: (await tx.agentTokens(caller.account.id)).map(shown),
}));

agentTokens.audited(operations.revokeAgentToken, async (tx, record, context, { token_id }) => {
  const tokens = await tx.agentTokens(context.caller.account.id);
  const token = tokens.find(({ id }) => id === token_id);
  if (!token) throw notFound("token");
  await revokeTokens(tx, [token_id]);
  const agent = token.account.username;
  await record("agent_token_revoked", { ...ownDetails(context), agent, agent_token: token_id });
});

const shown = (token: AgentTokenRecord): AgentToken => ({
  id: token.id,
  agent_username: token.account.username,
  name: token.name,
  created_at: iso(token.created_at),
  last_used_at: isoOrNull(token.last_used_at),
});
