import { type AgentToken, operations } from "@parley/protocol";
import { createResource } from "../calls/bind.ts";
import { revokeTokens } from "../domain/agent-tokens.ts";
import { ownAgentAccount } from "../domain/agents.ts";
import { lockActive } from "../domain/sessions.ts";
import { isExternal } from "../rules/agents.ts";
import { badField, conflict, notFound } from "../rules/failure.ts";
import { iso, isoOrNull } from "../rules/time.ts";
import { hashToken } from "../rules/tokens.ts";
import { tokenOf } from "../security/caller.ts";
import { newToken } from "../security/tokens.ts";
import type { AgentTokenRecord } from "../store/agent-tokens.ts";

type Needs = "config" | "store" | "audit";
export const agentTokens = createResource<Needs>();

const MAX_TOKENS_PER_AGENT = 10;

agentTokens.handle(operations.createAgentToken, async (context, input) => {
  const { config, audit, caller, origin } = context;
  const id = Bun.randomUUIDv7();
  const token = newToken("agent");
  await audit.write(async (tx, record) => {
    // One after another: otherwise two calls could both create the last token.
    await lockActive(tx, caller.account);
    const agent = await ownAgentAccount(tx, config, caller, input.agent_username);
    if (!isExternal(agent)) throw badField("agent_username", "is not an external agent");
    const existing = await tx.agentTokens(caller.account.id);
    const { length } = existing.filter(({ account }) => account.id === agent.id);
    if (length >= MAX_TOKENS_PER_AGENT) throw conflict(`the agent has ${length} tokens already`);
    await tx.insertAgentToken({
      id,
      token_hash: hashToken(token),
      account_id: agent.id,
      name: input.name ?? "",
      at: Date.now(),
    });
    await record("agent_token_created", {
      account: caller.account.username,
      agent: agent.username,
      agent_token: id,
      origin,
      ...tokenOf(caller),
    });
  });
  return { id, token };
});

agentTokens.handle(operations.getAgentTokens, async ({ store, caller }) => {
  const tokens = await store.read((tx) => tx.agentTokens(caller.account.id));
  return { items: tokens.map(shown) };
});

agentTokens.handle(operations.revokeAgentToken, async (context, { token_id }) => {
  const { audit, caller, origin } = context;
  await audit.write(async (tx, record) => {
    const tokens = await tx.agentTokens(caller.account.id);
    const token = tokens.find(({ id }) => id === token_id);
    if (!token) throw notFound("token");
    await revokeTokens(tx, [token_id]);
    await record("agent_token_revoked", {
      account: caller.account.username,
      agent: token.account.username,
      agent_token: token_id,
      origin,
      ...tokenOf(caller),
    });
  });
});

const shown = (token: AgentTokenRecord): AgentToken => ({
  id: token.id,
  agent_username: token.account.username,
  name: token.name,
  created_at: iso(token.created_at),
  last_used_at: isoOrNull(token.last_used_at),
});
