import type { Turn } from "@parley/protocol";
import type { AccountRecord } from "./accounts.ts";
import type { Awaitable } from "./awaitable.ts";
import type { MessageRecord } from "./messages.ts";

export interface TurnReads {
  /** In a write unit, no other unit changes the turn or its conversation until this one ends. */
  turn(id: number): Awaitable<TurnRecord | null>;
  turnOfMessage(message: MessageRecord): Awaitable<TurnRecord | null>;
  /** Turns of a conversation that wait or run, oldest first. */
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
   * Records that an agent is to answer a message, which must exist. When `most_waiting` turns of the
   * agent wait in the conversation, no turn is added: the last of them that is open-ended and has the
   * same refusal takes the new trigger.
   */
  queueTurn(turn: NewTurn): Awaitable<void>;
  /** Deletes the waiting turns among these. The same unit has read them with `openTurns`. */
  dropTurns(ids: readonly number[]): Awaitable<void>;
  /**
   * Claims waiting turns for a node, at most one for each agent and conversation that has none
   * running. `more` says that there may be others to claim at once. Turns of external agents are left
   * to their programs, unless they are refused.
   */
  claimTurns(
    node: string,
    leaseMs: number,
    most: number,
  ): Awaitable<{ turns: TurnRecord[]; more: boolean }>;
  /**
   * Claims a waiting turn of an external agent for its program: the given one, or the oldest in a
   * conversation where none of the agent runs. `busy`: there is one, but another unit owns its
   * conversation.
   */
  claimExternalTurn(
    claim: { agentId: number; turnId: number | null },
    leaseMs: number,
  ): Awaitable<{ turn: TurnRecord | null; busy: boolean }>;
  /**
   * Claims turns of external agents that have waited for `waitedMs`, and whose agents were not seen for
   * as long: at most one for each agent and conversation.
   */
  claimOfflineTurns(waitedMs: number, leaseMs: number, most: number): Awaitable<TurnRecord[]>;
  /**
   * Running turns whose lease has expired, unless another node than `node` owns them and is alive; in a
   * store of one process also those that another process has left.
   */
  abandonedTurns(node: string): Awaitable<TurnRecord[]>;
  /** Takes over an abandoned turn that has streamed nothing, and frees what it has reserved. */
  adoptTurn(id: number, node: string, leaseMs: number): Awaitable<void>;
  /** Makes a node count as alive for this long, whoever locks its turns meanwhile. */
  renewNode(node: string, leaseMs: number): Awaitable<void>;
  /** Renews the leases of the turns among these that the node owns. */
  renewLeases(node: string, ids: readonly number[], leaseMs: number): Awaitable<void>;
  /**
   * Gives a claimed turn its message, its model and its start time. The same unit has read or inserted
   * the message.
   */
  beginTurn(id: number, begun: { messageUuid: string; model: string; at: number }): Awaitable<void>;
  /**
   * Reserves the most that a running turn may spend, instead of what it has reserved. The turn has
   * begun; the same unit has read it with `turn`, and what its agent may spend with `spending`.
   */
  reserveTurn(turn: TurnRecord, reservation: Reservation): Awaitable<void>;
  /** Stores what the calls of the model have taken so far. */
  setRounds(id: number, rounds: readonly TurnRound[]): Awaitable<void>;
  /** Stores how often the provider has been called for a turn. */
  setTries(id: number, tries: number): Awaitable<void>;
  /**
   * Appends streamed text to the messages of turns that the node owns. Returns the ids of the turns
   * that it stored nothing for: the node does not own them any more, or an earlier chunk is missing.
   */
  appendChunks(node: string, chunks: readonly NewChunk[]): Awaitable<number[]>;
  /**
   * Finalizes the message of a running turn, replaces its reservation by what it used, and increments
   * the conversation's counter, whose new value it returns. The same unit has read the turn with
   * `turn`. Throws when it has no message.
   */
  finishTurn(turn: TurnRecord, finished: FinishedTurn): Awaitable<number>;
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
  readonly refusal: string | null;
  readonly status: "waiting" | "running" | FinishedTurn["status"];
  /** The node that owns it while it runs. */
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
  readonly tries: number;
  readonly started_at: number | null;
  readonly first_token_at: number | null;
  readonly finished_at: number | null;
  readonly usage: Turn["usage"];
  /** The calls of the model that have ended, oldest first. */
  readonly rounds: readonly TurnRound[];
}

/** One call of the model. */
export interface TurnRound {
  readonly duration_ms: number;
  readonly usage: Turn["usage"];
}

export interface NewTurn {
  agent_id: number;
  conversation_id: number;
  trigger_uuid: string;
  /** The message whose tool calls it continues. */
  continues_uuid?: string;
  open_ended: boolean;
  refusal: string | null;
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
