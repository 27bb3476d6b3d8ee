import type { Message } from "@parley/protocol";
import type { Operation } from "./history.ts";

/** The stored state after a run, as seen by an account that is in every conversation. */
export interface FinalState {
  chats: readonly FinalChat[];
  /** The receipt of every agent message. */
  receipts: readonly { status: string; usage: Tokens | null }[];
  usage: readonly (Tokens & { turns: number; failures: number })[];
  /** The full answer of an agent whose turn was not interrupted. */
  answer: string;
}

export interface Tokens {
  input_tokens: number;
  output_tokens: number;
}

export interface FinalChat {
  id: string;
  title: string | null;
  /** The conversation's change counter. */
  seq: number;
  members: readonly string[];
  reads: Readonly<Record<string, number>>;
  /** Oldest first. */
  messages: readonly Message[];
  /** By username, for members: the emojis of their own reactions, by message id. */
  reacted: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;
}

/** A contradiction between the history and the final state. */
export interface Violation {
  what: string;
  /** The operations involved. */
  operations: readonly Operation[];
}
