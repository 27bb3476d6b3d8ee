import type { Awaitable } from "./awaitable.ts";

/** What tools ask the owners of agents while they run. */
export interface ElicitationReads {
  elicitation(uuid: string): Awaitable<ElicitationRecord | null>;
  /**
   * The ids of the messages in which tools ask an owner what is not answered, oldest first. Messages
   * that are deleted since, or that the owner cannot see, are among them.
   */
  openElicitations(ownerId: number): Awaitable<string[]>;
}

export interface ElicitationWrites {
  insertElicitation(question: NewElicitation): Awaitable<void>;
  /** Stores the answer, unless there is one. The same unit owns the conversation. */
  answerElicitation(uuid: string, answer: ElicitationAnswer): Awaitable<void>;
  /**
   * Deletes what was asked in these messages and not answered, and returns the ids of the questions. The
   * same unit owns the conversation.
   */
  cancelElicitations(messageUuids: readonly string[]): Awaitable<string[]>;
  /** Deletes what was asked during a call, answers included. */
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

export interface ElicitationAnswer {
  readonly action: "accept" | "decline";
  readonly content: Readonly<Record<string, unknown>>;
}

export interface ElicitationRecord extends Omit<NewElicitation, "message_uuid"> {
  readonly answer: ElicitationAnswer | null;
}
