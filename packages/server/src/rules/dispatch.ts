/** An agent of a conversation, as far as answering goes. */
export interface Candidate {
  readonly account: {
    readonly id: number;
    readonly username: string;
    readonly owner_id: number | null;
  };
  readonly always_on: boolean;
  readonly spenders: "owner" | "participants";
  readonly waiting_turns: number;
}

export interface Dispatched {
  readonly agent_id: number;
  /** Why it must not call its provider, if it must not. */
  readonly refusal: string | null;
  /** How many of its turns may wait in the conversation. */
  readonly waiting_turns: number;
}

/**
 * Which agents answer a message that has just been written. In a direct conversation every human
 * message; in a group every human message where the agent is always on, otherwise a mention.
 * Agents start nobody, whatever they write.
 */
export function dispatch(
  message: {
    readonly sender: { readonly id: number; readonly kind: "human" | "agent" };
    readonly mentions: readonly string[];
  },
  conversation: { readonly kind: "direct" | "group" },
  agents: readonly Candidate[],
): Dispatched[] {
  if (message.sender.kind !== "human") return [];
  return agents.flatMap<Dispatched>(({ account, always_on, spenders, waiting_turns }) => {
    const asked = conversation.kind === "direct" || message.mentions.includes(account.username);
    if (!asked && !always_on) return [];
    const refusal = spendingRefusal({ account, spenders }, message.sender);
    // Somebody who asked is told why not; somebody who only talked is not bothered.
    return asked || refusal === null ? [{ agent_id: account.id, refusal, waiting_turns }] : [];
  });
}

/** Why an agent must not spend its owner's key on what this person asks, if it must not. */
export const spendingRefusal = (
  { account, spenders }: Pick<Candidate, "account" | "spenders">,
  asker: { readonly id: number },
): string | null =>
  spenders === "participants" || account.owner_id === asker.id
    ? null
    : "Only this agent's owner may ask it: they pay for its answers.";
