import type { ToolCall } from "@parley/protocol";
import type { ProviderFields } from "../rules/model-content.ts";
import type { AccountRecord } from "./accounts.ts";
import type { Awaitable } from "./awaitable.ts";

/** What agents asked tools for. Deleting a message deletes its calls. */
export interface ToolCallReads {
  /** In a write unit, no other unit changes the call or its conversation until this one ends. */
  toolCall(uuid: string): Awaitable<ToolCallRecord | null>;
  /** The calls of messages, in the order in which the model asked for them. */
  toolCallsOf(messageIds: readonly number[]): Awaitable<ToolCallRecord[]>;
  /** The calls of complete messages that the owner of their agents can decide about, oldest first. */
  pendingToolCalls(ownerId: number, now: number): Awaitable<ToolCallRecord[]>;
  /** Pending calls whose time is over at `now`, at most `limit`, the earliest first. */
  expiredToolCalls(now: number, limit: number): Awaitable<ToolCallRecord[]>;
}

export interface ToolCallWrites {
  /**
   * Adds a call to the calls of a message, increments the conversation's counter and returns its new
   * value. The same unit owns the conversation.
   */
  insertToolCall(call: NewToolCall): Awaitable<number>;
  /**
   * Changes a call, which the same unit has read, increments the conversation's counter and returns its
   * new value.
   */
  updateToolCall(call: ToolCallRecord, change: ToolCallChange): Awaitable<number>;
  /** Stores that an approved call is about to be made, so that no other process makes it too. */
  startToolCall(call: ToolCallRecord, at: number): Awaitable<void>;
}

export interface NewToolCall {
  readonly uuid: string;
  readonly message_id: number;
  readonly conversation_id: number;
  readonly agent_id: number;
  /** Who pays for the agent, and decides. */
  readonly owner_id: number;
  /** The round of the turn that asked for it. */
  readonly round: number;
  /** Its place among the calls of the message. */
  readonly position: number;
  /** The length in bytes of what the agent had written before. */
  readonly text_bytes: number;
  /** The id that the model gave it. */
  readonly model_id: string;
  /** What only the provider of the model understands of it; null if there is nothing. */
  readonly provider_fields: ProviderFields | null;
  /** Null for built-in tools. */
  readonly server_id: string | null;
  readonly server: string;
  readonly tool: string;
  readonly title: string;
  /** The fingerprint of the tool for which the call was asked; null for built-in tools. */
  readonly fingerprint: string | null;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly status: ToolCall["status"];
  readonly error: string | null;
  readonly created_at: number;
  readonly started_at: number | null;
  readonly finished_at: number | null;
  /** When it expires if nobody decides; null if nobody has to. */
  readonly expires_at: number | null;
}

export interface ToolCallRecord extends NewToolCall {
  readonly agent: AccountRecord;
  readonly message_uuid: string;
  readonly conversation_uuid: string;
  readonly result: string | null;
  readonly decided_by: string | null;
  readonly note: string | null;
  readonly decided_at: number | null;
}

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
