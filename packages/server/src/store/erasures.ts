import type { AccountRecord } from "./accounts.ts";
import type { Awaitable } from "./awaitable.ts";

/**
 * The erasure of accounts. `eraseAccount` does what must happen at once. What takes long, such as
 * deleting messages, follows in steps; the erasure is open until they are finished, so that a later
 * process continues after a crash.
 */
export interface ErasureReads {
  /** Erasures whose steps are not finished, oldest first. */
  openErasures(): Awaitable<ErasureRecord[]>;
  /** The accounts that a person owns, erased ones included: agents, and those of incoming hooks. */
  ownedAccounts(ownerId: number): Awaitable<AccountRecord[]>;
  /**
   * Tool calls of which something is stored that only the owner of their agents saw, or whose tools have
   * asked the owner something.
   */
  toolCallsToErase(ownerId: number): Awaitable<ToolCallPlace[]>;
}

export interface ErasureWrites {
  /**
   * Marks the account of a person or an agent, and those that it owns, as erased, and begins an open
   * erasure. Deletes the password, the external id, metadata, identities, names to be found by, provider
   * keys, settings of agents, incoming hooks, hidden messages, uploads that no message has, and the
   * rights of an operator. Ends the sessions, and deletes their client and network. The username stays,
   * so that nobody else can have it. Returns false, and changes nothing, when the account is erased
   * already.
   */
  eraseAccount(account: AccountRecord, erasure: NewErasure): Awaitable<boolean>;
  /**
   * Deletes what only the owner of an agent saw of tool calls of a conversation, and what their tools
   * asked. The arguments stay with the messages.
   */
  eraseToolCalls(conversationId: number, uuids: readonly string[]): Awaitable<void>;
  /** Records that all steps are finished. */
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
