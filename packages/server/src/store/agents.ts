import type { AgentLimits } from "@parley/protocol";
import type { AccountRecord } from "./accounts.ts";
import type { Awaitable } from "./awaitable.ts";

export interface AgentReads {
  /**
   * The agents of an owner that are not erased: the default ones, then the others, each ordered by
   * username. Accounts of incoming hooks are none.
   */
  agents(ownerId: number): Awaitable<AgentRecord[]>;
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
  setAgentProfile(
    accountId: number,
    profile: { model: string | null; instructions: string | null },
  ): Awaitable<void>;
  /**
   * Changes the provider. What the agent uses on this day (UTC) at the operator's expense counts for
   * every provider, so that a change frees nothing.
   */
  setAgentProvider(accountId: number, provider: string, at: number): Awaitable<void>;
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
