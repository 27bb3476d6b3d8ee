import type { Turn } from "@parley/protocol";
import type { AccountRecord } from "./accounts.ts";
import type { Awaitable } from "./awaitable.ts";
import type { MessageRecord } from "./message-records.ts";

export interface TurnReads {
  /** A write unit owns its conversation from then on, and no other unit appends to its message. */
  turn(id: number): Awaitable<TurnRecord | null>;
  /** The turn that wrote the message; null for a message that no turn wrote. */
  turnOfMessage(message: MessageRecord): Awaitable<TurnRecord | null>;
  /** Turns of a conversation that wait or run, oldest first. A write unit owns the conversation then. */
  openTurns(conversationId: number): Awaitable<TurnRecord[]>;
  /** The conversations in which agents of the owner have turns that wait or run. */
  conversationsWithOpenTurns(ownerId: number): Awaitable<number[]>;
  /** The text that a message has streamed so far; empty once the message is finalized. */
  streamed(messageId: number): Awaitable<string>;
  /** The length of that text in bytes. */
  streamedBytes(messageId: number): Awaitable<number>;
  /** The turns of an external agent that it can claim now, oldest first, at most `most`. */
  claimableTurns(agentId: number, most: number): Awaitable<TurnRecord[]>;
}

export interface TurnWrites {
  /**
   * Records that an agent is to answer a message, which must exist. If the new turn is open-ended and
   * `most_waiting` turns of the agent wait in the conversation, it is folded: the last of these that is
   * open-ended and has the same refusal gets the new trigger. Otherwise, or if there is none, a turn is
   * added.
   */
  queueTurn(turn: NewTurn): Awaitable<void>;
  /** Deletes the waiting turns among these. The same unit has read them with `openTurns`. */
  dropTurns(ids: readonly number[]): Awaitable<void>;
  /**
   * Claims waiting turns for a node, oldest first: at most one for each agent and conversation, and
   * none where a turn of the agent runs. `share` gets the number of those that can be claimed, at most
   * `most`, and returns how many of them to claim. Turns of external agents are left to their programs,
   * unless they have a refusal.
   */
  claimTurns(
    node: string,
    leaseMs: number,
    most: number,
    share?: (waiting: number) => number,
  ): Awaitable<ClaimedTurns>;
  /**
   * Claims a turn among `claimableTurns` for the program of an external agent: the given one, or without
   * an id the oldest. `busy`: there is one, but another unit owns its conversation now.
   */
  claimExternalTurn(
    claim: { agentId: number; turnId: number | null },
    leaseMs: number,
  ): Awaitable<{ turn: TurnRecord | null; busy: boolean }>;
  /**
   * Claims turns of external agents that nobody is expected to answer, so that they can be failed: at
   * most one for each agent and conversation.
   */
  claimOfflineTurns(waits: OfflineWaits, leaseMs: number, most: number): Awaitable<TurnRecord[]>;
  /**
   * Running turns whose lease has expired, except those of other nodes that are alive, and those whose
   * conversation another unit owns now. Perhaps not all at once. A store of one process also returns the
   * turns that an earlier process has left, whatever their lease.
   */
  abandonedTurns(node: string): Awaitable<TurnRecord[]>;
  /**
   * Takes over an abandoned turn that has streamed nothing, and frees what it has reserved. The same unit
   * has found it with `abandonedTurns`.
   */
  adoptTurn(id: number, node: string, leaseMs: number): Awaitable<void>;
  /**
   * Marks a node as alive for `leaseMs`: its turns are not abandoned meanwhile, even if other units lock
   * them so that their leases cannot be renewed.
   */
  renewNode(node: string, leaseMs: number): Awaitable<void>;
  /**
   * Renews the leases of the turns among these that the node runs. With `leaseMs` 0 they end, so that
   * other nodes take the turns over.
   */
  renewLeases(node: string, ids: readonly number[], leaseMs: number): Awaitable<void>;
  /**
   * Gives a claimed turn its message, its model and its start time. The same unit has claimed or read
   * the turn, and has read or inserted the message.
   */
  beginTurn(id: number, begun: { messageUuid: string; model: string; at: number }): Awaitable<void>;
  /**
   * Reserves the most that a turn may spend, in place of what it has reserved before. The turn has
   * begun. The same unit has read it with `turn`, and what its agent has spent with `spending`.
   */
  reserveTurn(turn: TurnRecord, reservation: Reservation): Awaitable<void>;
  /** Stores what the calls of the model have taken so far. */
  setRounds(id: number, rounds: readonly TurnRound[]): Awaitable<void>;
  /** Stores how far the calls of the provider have come. Does nothing once the turn has ended. */
  setAttempt(id: number, attempt: TurnAttempt): Awaitable<void>;
  /**
   * Appends streamed text to the messages of turns that the node runs. Returns the ids of the turns
   * whose text it did not store: the node does not run them any more, or an earlier chunk is missing.
   */
  appendChunks(node: string, chunks: readonly NewChunk[]): Awaitable<number[]>;
  /**
   * Finalizes the message of a running turn, and replaces what the turn has reserved by what it has
   * used. Increments the conversation's counter and returns its new value. The same unit has read the
   * turn with `turn`. Throws when the turn has no message.
   */
  finishTurn(turn: TurnRecord, finished: FinishedTurn): Awaitable<number>;
}

export interface ClaimedTurns {
  readonly turns: TurnRecord[];
  /** Whether others may be claimed at once. */
  readonly more: boolean;
  /** Number of turns that could be claimed and are beyond the share. */
  readonly left: number;
}

/** How long turns wait for the programs of external agents. Null: without end. */
export interface OfflineWaits {
  /** For an agent that was not seen for as long. */
  readonly offlineMs: number | null;
  /** For an agent that has no turn, and had none for as long. */
  readonly unclaimedMs: number | null;
}

export interface TurnRecord {
  readonly id: number;
  readonly agent: AccountRecord;
  readonly conversation_id: number;
  readonly conversation_uuid: string;
  readonly trigger_uuid: string;
  readonly trigger_seq: number;
  readonly trigger_sender_id: number;
  readonly trigger_deleted: boolean;
  /** The message whose tool calls it continues; null for the first turn about a message. */
  readonly continues_uuid: string | null;
  readonly continues_seq: number | null;
  /** Whether it answers all messages up to the next one that has a turn, or its trigger alone. */
  readonly open_ended: boolean;
  /** Whether it replaced earlier triggers, which it answers too. */
  readonly folded: boolean;
  /** What is answered instead if the agent may not answer; null if it may. */
  readonly refusal: string | null;
  readonly status: "waiting" | "running" | FinishedTurn["status"];
  /** The node that runs it. */
  readonly node: string | null;
  /** Row of its message; null until the turn begins for the first time. */
  readonly message_id: number | null;
  readonly message_uuid: string | null;
  readonly message_seq: number | null;
  readonly model: string;
  readonly error: Turn["error"];
  readonly context_ids: readonly string[];
  readonly reserved: number;
  /** Whether the operator's key pays for it. Known once tokens are reserved. */
  readonly by_operator: boolean;
  /** Estimated input tokens, used when the provider reports none. */
  readonly estimated_input: number;
  /** Of a running turn: the `input_tokens` of its attempt. */
  readonly charged_input: number | null;
  readonly tries: number;
  readonly started_at: number | null;
  readonly first_token_at: number | null;
  readonly finished_at: number | null;
  readonly usage: Turn["usage"];
  /** The calls of the model that have ended, oldest first. */
  readonly rounds: readonly TurnRound[];
}

/** The latest attempt of a running turn to call the provider. */
export interface TurnAttempt {
  /** How often the provider has been called for the turn, this attempt included. */
  tries: number;
  /** What the provider has reported; 0 if it refused the call, null while nothing is known. */
  input_tokens: number | null;
}

/** One call of the model. */
export interface TurnRound {
  readonly duration_ms: number;
  readonly usage: Turn["usage"];
}

export interface NewTurn {
  agent_id: number;
  conversation_id: number;
  /** The message that it answers. */
  trigger_uuid: string;
  /** The message whose tool calls it continues. */
  continues_uuid?: string;
  open_ended: boolean;
  refusal: string | null;
  /** Number of waiting turns of the agent in the conversation from which on open-ended ones are folded. */
  most_waiting: number;
  at: number;
}

export interface FinishedTurn {
  status: "complete" | "stopped" | "failed";
  content: string;
  mentions: readonly string[];
  error: Turn["error"];
  usage: Turn["usage"];
  at: number;
}

export interface NewChunk {
  turn_id: number;
  text: string;
  /** Length of the message in bytes, this chunk included. */
  offset: number;
  first: boolean;
  at: number;
}

export interface Reservation {
  /** What earlier rounds of the turn have used. */
  spent_tokens: number;
  input_tokens: number;
  output_tokens: number;
  context_ids: readonly string[];
  by_operator: boolean;
}
