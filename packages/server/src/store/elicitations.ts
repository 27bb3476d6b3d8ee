import type { Awaitable } from "./awaitable.ts";

/** Questions that tools ask the owners of agents during a call. */
export interface ElicitationReads {
  elicitation(uuid: string): Awaitable<ElicitationRecord | null>;
  /**
   * The questions that the owner has not answered, oldest first. Includes those in messages that were
   * deleted since, and in messages that the owner cannot see any more.
   */
  openElicitations(ownerId: number): Awaitable<OpenElicitation[]>;
}

export interface ElicitationWrites {
  insertElicitation(question: NewElicitation): Awaitable<void>;
  /** Stores the answer, unless the question has one. The unit owns the conversation. */
  answerElicitation(uuid: string, answer: ElicitationAnswer): Awaitable<void>;
  /**
   * Deletes the questions in these messages that have no answer, and returns their UUIDs. The unit owns
   * the conversation.
   */
  cancelElicitations(messageUuids: readonly string[]): Awaitable<string[]>;
  /** Deletes the questions that were asked during a call, and their answers. */
  deleteElicitations(callUuid: string): Awaitable<void>;
}

export interface NewElicitation {
  readonly uuid: string;
  readonly call_uuid: string;
  readonly conversation_id: number;
  readonly owner_id: number;
  /** The message with the form. */
  readonly message_uuid: string;
  /** The JSON Schema of what is asked for. */
  readonly schema: Readonly<Record<string, unknown>>;
}

export type OpenElicitation = Pick<NewElicitation, "message_uuid" | "call_uuid">;

export interface ElicitationAnswer {
  readonly action: "accept" | "decline";
  readonly content: Readonly<Record<string, unknown>>;
}

export interface ElicitationRecord extends Omit<NewElicitation, "message_uuid"> {
  readonly answer: ElicitationAnswer | null;
}
