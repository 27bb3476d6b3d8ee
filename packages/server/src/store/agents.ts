import type { AgentLimits } from "@parley/protocol";
import type { AccountRecord } from "./accounts.ts";
import type { Awaitable } from "./awaitable.ts";

export interface AgentReads {
  /**
   * The agents of an owner that are not erased: first the default ones, then those that the owner
   * created, both ordered by username. Accounts of incoming hooks are not agents.
   */
  agents(ownerId: number): Awaitable<AgentRecord[]>;
  /** The agent with that account, also an erased one. Null when the account has no owner. */
  agent(accountId: number): Awaitable<AgentRecord | null>;
  /** The agents of a conversation that are not erased, in the order in which they joined. */
  conversationAgents(conversationId: number): Awaitable<ConversationAgent[]>;
  /** Every sealed key, for the rotation of the key that seals them. */
  sealedKeys(): Awaitable<SealedKey[]>;
}

export interface AgentWrites {
  /** Inserts or replaces an owner's key for a provider. */
  setAgentKey(key: NewKey): Awaitable<void>;
  /** Replaces a key's sealed form, unless the key was changed since it was read. */
  resealKey(key: SealedKey, sealed: string): Awaitable<void>;
  /** Changes nothing when there is no such key. */
  removeAgentKey(ownerId: number, provider: string): Awaitable<void>;
  /** Replaces both. Null means the provider's default model, and no instructions. */
  setAgentProfile(
    accountId: number,
    profile: { model: string | null; instructions: string | null },
  ): Awaitable<void>;
  /**
   * Changes the provider. What the agent uses at the operator's expense on the day (UTC) of `at` then
   * counts for every provider, so that a change does not reset the owner's daily limit.
   */
  setAgentProvider(accountId: number, provider: string, at: number): Awaitable<void>;
  /** Replaces the limits. An agent whose limits were never set has the default ones. */
  setAgentLimits(accountId: number, limits: AgentLimits): Awaitable<void>;
  /** Changes nothing when the agent is not a member of the conversation. */
  setAlwaysOn(conversationId: number, accountId: number, alwaysOn: boolean): Awaitable<void>;
}

export interface AgentRecord {
  readonly account: AccountRecord;
  readonly owner: AccountRecord;
  readonly model: string | null;
  readonly instructions: string | null;
  readonly limits: AgentLimits;
  readonly sealed_key: string | null;
  readonly key_tail: string | null;
}

/** An agent as a member of a conversation, with the limits that decide whether it answers. */
export interface ConversationAgent {
  readonly account: AccountRecord;
  readonly always_on: boolean;
  readonly spenders: AgentLimits["spenders"];
  readonly waiting_turns: number;
  /** Whether its owner's account is suspended. */
  readonly is_suspended: boolean;
}

export interface SealedKey {
  readonly owner_id: number;
  readonly provider: string;
  readonly sealed: string;
}

export interface NewKey extends SealedKey {
  readonly tail: string;
  readonly at: number;
}
