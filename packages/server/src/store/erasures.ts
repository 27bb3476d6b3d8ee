import type { AccountRecord } from "./accounts.ts";
import type { Awaitable } from "./awaitable.ts";

/** The erasure of accounts. What takes long is done after it, in steps that a crash can interrupt. */
export interface ErasureReads {
  /** Erasures whose steps are not finished, oldest first. */
  openErasures(): Awaitable<ErasureRecord[]>;
  /** The accounts that belong to a person: their agents and those of their incoming hooks. */
  ownedAccounts(ownerId: number): Awaitable<AccountRecord[]>;
  /**
   * Tool calls of which something is stored that only the owner of their agents saw, or whose tools have
   * asked the owner something.
   */
  toolCallsToErase(ownerId: number): Awaitable<ToolCallPlace[]>;
}

export interface ErasureWrites {
  /**
   * Marks an account, of a person or an agent, and those that belong to it as erased. Deletes the
   * password, the external id, metadata, identities, names to be found by, provider keys, settings of
   * agents, incoming hooks, hidden messages, uploads that no message has, and the rights of an operator.
   * Sessions end, and keep neither client nor network. The username stays, so that nobody else can have
   * it. Begins an open erasure. Returns false, and changes nothing, when the account is erased already.
   */
  eraseAccount(account: AccountRecord, erasure: NewErasure): Awaitable<boolean>;
  /**
   * Deletes what only the owner of an agent saw of tool calls of a conversation, and what their tools
   * asked. The arguments stay with the messages.
   */
  eraseToolCalls(conversationId: number, uuids: readonly string[]): Awaitable<void>;
  finishErasure(accountId: number): Awaitable<void>;
}

export interface ToolCallPlace {
  readonly uuid: string;
  readonly conversation_id: number;
}

export interface NewErasure {
  /** Whether the messages of the person and of their agents are deleted too. */
  readonly messages: boolean;
  readonly at: number;
}

export interface ErasureRecord {
  readonly account: AccountRecord;
  readonly messages: boolean;
}
