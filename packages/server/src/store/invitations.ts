import type { AddedBy } from "@parley/protocol";
import type { Awaitable } from "./awaitable.ts";

/** Who may add whom to conversations. */
export interface InvitationReads {
  /** Who may add the account to conversations. */
  addedBy(accountId: number): Awaitable<AddedBy>;
  /**
   * The subset of these accounts that do not let the inviter add them: those that have blocked the
   * inviter, and those that only people they know may add. People know the members of the
   * conversations in which they have written.
   */
  refusingInvitation(accountIds: readonly number[], inviterId: number): Awaitable<number[]>;
  /** The subset of these people who do not know the inviter. */
  strangersAmong(accountIds: readonly number[], inviterId: number): Awaitable<number[]>;
  /** Groups that the creator started and in which the member has never written, oldest first. */
  unansweredGroups(memberId: number, creatorId: number, limit: number): Awaitable<string[]>;
  /** The subset of these accounts that left the conversation for good. */
  goneForGood(conversationId: number, accountIds: readonly number[]): Awaitable<number[]>;
}

export interface InvitationWrites {
  setAddedBy(accountId: number, addedBy: AddedBy): Awaitable<void>;
  /** Remembers that an account left the conversation for good. */
  leaveForGood(conversationId: number, accountId: number, at: number): Awaitable<void>;
}
