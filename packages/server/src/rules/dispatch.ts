import type { TurnError, TurnFacts } from "@parley/protocol";
import { turnError } from "@parley/protocol/text/turn-sentences";
import type { AccountRecord } from "./accounts.ts";

/** An agent in a conversation. */
export interface Candidate {
  readonly account: Pick<AccountRecord, "id" | "username" | "owner_id">;
  readonly always_on: boolean;
  readonly spenders: "owner" | "participants";
  readonly waiting_turns: number;
  /** Whether its owner's account is suspended. */
  readonly is_suspended: boolean;
}

/** Why an agent must not call its provider, as it is stored with the turn. */
type Refusal = "agent_suspended" | "spenders";

export interface Dispatched {
  readonly agent_id: number;
  /** Why the agent must not call its provider, or null if it may. */
  readonly refusal: Refusal | null;
  /** How many of the agent's turns may wait in the conversation. */
  readonly waiting_turns: number;
}

/**
 * Selects the agents that answer a new message. In a direct conversation the agent answers every
 * human message. In a group it answers human messages that mention it, or all of them if it is
 * always on. Messages of agents never start a turn.
 */
export function dispatch(
  message: {
    readonly sender: Pick<AccountRecord, "id" | "kind">;
    readonly mentions: readonly string[];
  },
  conversation: { readonly kind: "direct" | "group" },
  agents: readonly Candidate[],
): Dispatched[] {
  if (message.sender.kind !== "human") return [];
  return agents.flatMap<Dispatched>((agent) => {
    const { account, always_on, waiting_turns } = agent;
    const isAsked = conversation.kind === "direct" || message.mentions.includes(account.username);
    if (!isAsked && !always_on) return [];
    const refusal = spendingRefusal(agent, message.sender);
    // A refusal is shown only to people who asked the agent.
    return isAsked || refusal === null ? [{ agent_id: account.id, refusal, waiting_turns }] : [];
  });
}

/** Why the agent must not spend its owner's key for this person, or null if it may. */
export const spendingRefusal = (
  { account, spenders, is_suspended }: Pick<Candidate, "account" | "spenders" | "is_suspended">,
  asker: Pick<AccountRecord, "id">,
): Refusal | null => {
  if (is_suspended) return "agent_suspended";
  return spenders === "participants" || account.owner_id === asker.id ? null : "spenders";
};

/** How a turn ends that was queued with a refusal. */
export const refusalError = (refusal: string): TurnError =>
  refusal in refused
    ? turnError(refused[refusal as Refusal])
    : // A sentence, which an earlier version has stored.
      { code: "budget_exceeded", message: refusal };

const refused: Record<Refusal, TurnFacts> = {
  agent_suspended: { code: "agent_suspended" },
  spenders: {
    code: "budget_exceeded",
    parameters: { limit: "spenders", changed_by: "owner" },
  },
};
