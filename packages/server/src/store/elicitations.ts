import type { Awaitable } from "./awaitable.ts";

/** What tools ask the owners of agents while they run. */
export interface ElicitationReads {
  elicitation(uuid: string): Awaitable<ElicitationRecord | null>;
}

export interface ElicitationWrites {
  insertElicitation(question: NewElicitation): Awaitable<void>;
  /** Stores the answer, unless there is one. The same unit owns the conversation. */
  answerElicitation(uuid: string, answer: ElicitationAnswer): Awaitable<void>;
  /** Deletes what was asked during a call, answers included. */
  deleteElicitations(callUuid: string): Awaitable<void>;
}

export interface NewElicitation {
  readonly uuid: string;
  readonly call_uuid: string;
  readonly conversation_id: number;
  readonly owner_id: number;
  /** The JSON Schema of what is asked for. */
  readonly schema: Readonly<Record<string, unknown>>;
}

export interface ElicitationAnswer {
  readonly action: "accept" | "decline";
  readonly content: Readonly<Record<string, unknown>>;
}

export interface ElicitationRecord extends NewElicitation {
  readonly answer: ElicitationAnswer | null;
}
