import { randomBytes } from "node:crypto";
import { isExternal } from "../rules/agents.ts";
import { suspended, unauthorized } from "../rules/failure.ts";
import { hashToken } from "../rules/tokens.ts";
import type { Store } from "../store/store.ts";
import type { AuditLog } from "./audit-log.ts";
import type { AgentCaller, Origin } from "./caller.ts";
import { isStale } from "./tokens.ts";

const PREFIX = "pla_";

/** A token of an external agent, of 256 random bits. The store has only its hash. */
export const newAgentToken = () => `${PREFIX}${randomBytes(32).toString("base64url")}`;

export const isAgentToken = (token: string): boolean => token.startsWith(PREFIX);

/**
 * The agent of a token. Throws `unauthorized` for a token that is unknown or revoked, and `suspended` while
 * the agent's owner is suspended.
 */
export async function agentOfToken(
  { store, audit }: { store: Store; audit: AuditLog },
  token: string,
  origin: Origin,
): Promise<AgentCaller> {
  const { found, agent } = await store.read(async (tx) => {
    const record = await tx.agentToken(hashToken(token));
    return { found: record, agent: record && (await tx.agent(record.account.id)) };
  });
  const isErased = agent?.account.erased_at !== null || agent.owner.erased_at !== null;
  if (!found || !agent || isErased || !isExternal(agent.account)) {
    audit.recordOnce("agent_token_refused", origin.network, { origin });
    throw unauthorized("the token is unknown or revoked");
  }
  if (agent.owner.suspended_at !== null) throw suspended();
  const now = Date.now();
  if (isStale(found.last_used_at, now)) {
    await store.write((tx) => tx.touchAgentToken(found.id, now));
  }
  return { kind: "agent", account: agent.account, token_id: found.id };
}
