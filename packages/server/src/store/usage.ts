import type { UsageRow } from "@parley/protocol";
import type { Awaitable } from "./awaitable.ts";

/** What agents have spent. A turn counts for the day (UTC) on which it began. */
export interface UsageReads {
  /**
   * What an agent has spent or reserved. In a write unit, no other unit spends for the agent from
   * here until this one ends.
   */
  spending(agentId: number, conversationId: number, now: number): Awaitable<Spending>;
  /**
   * Tokens that all of an owner's agents of a provider have used or reserved today at the operator's
   * expense. In a write unit, no other unit spends for the owner at the operator's expense from here
   * until this one ends. Call it before `spending`.
   */
  operatorSpending(ownerId: number, provider: string, now: number): Awaitable<number>;
  /** Usage of an owner's agents by day, agent and conversation; both days are inclusive. */
  usage(ownerId: number, since: number | null, until: number | null): Awaitable<UsageRow[]>;
}

export interface Spending {
  /** Tokens used or reserved today, in all conversations. */
  today: number;
  /** Tokens used or reserved today in the conversation. */
  todayHere: number;
  /** Turns that called the provider in the last minute. */
  turnsInMinute: number;
}
