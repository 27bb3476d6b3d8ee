import type { DetailedCall } from "../rules/tool-calls.ts";
import type { ContextCall } from "../rules/tool-context.ts";
import type { AccountRecord } from "./accounts.ts";
import type { Awaitable } from "./awaitable.ts";

/** What agents asked tools for. Deleting a message deletes its calls. */
export interface ToolCallReads {
  /** A write unit owns the conversation of the call from then on. */
  toolCall(uuid: string): Awaitable<ToolCallRecord | null>;
  /** The calls of messages, in the given order of these, then as the model asked for them. */
  toolCallsOf(messageIds: readonly number[]): Awaitable<ToolCallRecord[]>;
  /** The calls of complete messages that the owner of their agents can decide about, oldest first. */
  pendingToolCalls(ownerId: number, now: number): Awaitable<ToolCallRecord[]>;
  /** Pending calls whose time is over at `now`, at most `limit`, the earliest first. */
  expiredToolCalls(now: number, limit: number): Awaitable<ToolCallRecord[]>;
}

export interface ToolCallWrites {
  /**
   * Adds a call to the calls of a message, increments the conversation's counter and returns its new
   * value. The unit owns the conversation.
   */
  insertToolCall(call: NewToolCall): Awaitable<number>;
  /**
   * Changes a call, which the same unit has read with `toolCall`, increments the conversation's counter
   * and returns its new value.
   */
  updateToolCall(call: ToolCallRecord, change: ToolCallChange): Awaitable<number>;
  /**
   * Stores that an approved call is about to be made, so that no other process makes it too. The same
   * unit has read it with `toolCall`.
   */
  startToolCall(call: ToolCallRecord, at: number): Awaitable<void>;
}

export interface ToolCallRecord extends DetailedCall, ContextCall {
  readonly message_id: number;
  readonly message_uuid: string;
  readonly conversation_id: number;
  readonly conversation_uuid: string;
  readonly agent: AccountRecord;
  readonly agent_id: number;
  /** Its place among the calls of the message. */
  readonly position: number;
  /** The fingerprint of the tool for which the call was asked; null for built-in tools. */
  readonly fingerprint: string | null;
}

export type NewToolCall = Omit<
  ToolCallRecord,
  "message_uuid" | "conversation_uuid" | "agent" | "result" | "decided_by" | "note" | "decided_at"
>;

/** What may change of a call. A field that is left out stays. */
export type ToolCallChange = Pick<ToolCallRecord, "status"> &
  Partial<
    Pick<
      ToolCallRecord,
      | "fingerprint"
      | "result"
      | "error"
      | "decided_by"
      | "note"
      | "decided_at"
      | "started_at"
      | "finished_at"
      | "expires_at"
    >
  >;
