import type { Turn } from "@parley/protocol";
import { EXTERNAL, EXTERNAL_NODE } from "../rules/agents.ts";
import { type AccountRecord, accountAs } from "./account-records.ts";
import type { Awaitable } from "./awaitable.ts";
import { incrementCounter } from "./counters.ts";
import { addMentions, toStoredMentions } from "./mentions.ts";
import type { MessageRecord } from "./message-records.ts";
import { type Either, json, NOW, raw, reader, type Sql, sql } from "./sql.ts";
import { type Reservation, releaseUsage, reserveUsage, settleUsage } from "./usage.ts";

export const turnReads = {
  /** Whether any turn waits or runs. SQLite uses a partial index only where a query has its condition. */
  hasOpenTurns: (db: Sql) =>
    db.exists`
      SELECT id FROM (SELECT id FROM turns WHERE status = 'waiting' UNION ALL
        SELECT id FROM turns WHERE status = 'running') AS open LIMIT 1`,
  /** A write unit owns its conversation from then on, and no other unit appends to its message. */
  async turn(db: Sql, id: number): Promise<TurnRecord | null> {
    // Chunks are appended without owning the conversation: owning the turn holds them off.
    const row = await db.getOwned(
      sql`SELECT conversation_id FROM turns WHERE id = ${id}`,
      sql`${TURNS} WHERE t.id = ${id}`,
      id,
    );
    return row && toTurn(row);
  },
  /** The turn that wrote the message; null for a message that no turn wrote. */
  turnOfMessage: (db: Sql, message: MessageRecord) =>
    db.getAs(toTurn)`${TURNS} WHERE t.message_id = ${message.id}`,
  /** Turns of a conversation that wait or run, oldest first. A write unit owns the conversation then. */
  async openTurns(db: Sql, conversationId: number): Promise<TurnRecord[]> {
    await db.own(conversationId);
    return db.allAs(toTurn)`
      ${TURNS} WHERE t.conversation_id = ${conversationId} AND t.status IN ('waiting', 'running')
      ORDER BY t.id`;
  },
  /** The conversations in which agents of the owner have turns that wait or run. */
  async conversationsWithOpenTurns(db: Sql, ownerId: number): Promise<number[]> {
    const ofStatus = (status: string) => sql`
      SELECT t.conversation_id AS id FROM accounts a JOIN turns t ON t.agent_id = a.id
      WHERE a.owner_id = ${ownerId} AND t.status = ${raw(`'${status}'`)}`;
    return db.column<number>`${ofStatus("waiting")} UNION ${ofStatus("running")}`;
  },
  /** The text that a message has streamed so far; empty once the message is finalized. */
  async streamed(db: Sql, messageId: number): Promise<string> {
    const rows = await db.all<{ text: string }>`
      SELECT text FROM chunks WHERE message_id = ${messageId} ORDER BY byte_offset`;
    return rows.map(({ text }) => text).join("");
  },
  /** The length of that text in bytes. */
  streamedBytes: (db: Sql, messageId: number) =>
    db.firstNumber`SELECT max(byte_offset) AS length FROM chunks WHERE message_id = ${messageId}`,
  /** The turns of an external agent that it can claim now, oldest first, at most `most`. */
  async claimableTurns(db: Sql, agentId: number, most: number): Promise<TurnRecord[]> {
    return turnsOf(db, await db.all`${claimable(agentId)} ORDER BY min(t.id) LIMIT ${most}`);
  },
};

export const turnWrites = {
  /**
   * Records that an agent is to answer a message, which must exist. If the new turn is open-ended and
   * `most_waiting` turns of the agent wait in the conversation, it is folded: the last of these that is
   * open-ended and has the same refusal gets the new trigger. Otherwise, or if there is none, a turn is
   * added.
   */
  async queueTurn(db: Sql, turn: NewTurn): Promise<void> {
    db.changes(turn.conversation_id);
    if (turn.open_ended && (await foldTurn(db, turn))) return;
    await db.change`
      INSERT INTO turns (agent_id, conversation_id, trigger_id, open_ended, refusal, status,
        created_at, continues_id)
      SELECT ${turn.agent_id}, ${turn.conversation_id}, id, ${turn.open_ended}, ${turn.refusal},
        'waiting', ${turn.at}, (SELECT id FROM messages WHERE uuid = ${turn.continues_uuid ?? null})
      FROM messages WHERE uuid = ${turn.trigger_uuid}`;
  },
  /** Deletes the waiting turns among these. The same unit has read them with `openTurns`. */
  async dropTurns(db: Sql, ids: readonly number[]): Promise<void> {
    await db.changed`
      DELETE FROM turns WHERE id = ANY(${ids}::bigint[]) AND status = 'waiting'
      RETURNING conversation_id`;
  },
  /**
   * Claims waiting turns for a node, oldest first: at most one for each agent and conversation, and
   * none where a turn of the agent runs. `share` gets the number of those that can be claimed, at most
   * `most`, and returns how many of them to claim. Turns of external agents are left to their programs,
   * unless they have a refusal.
   */
  async claimTurns(
    db: Sql,
    node: string,
    leaseMs: number,
    most: number,
    share = (waiting: number) => waiting,
  ): Promise<ClaimedTurns> {
    const waiting = await db.all<TurnHead>`
      ${HEADS} AND (a.provider IS DISTINCT FROM ${EXTERNAL} OR t.refusal IS NOT NULL)
      GROUP BY t.agent_id, t.conversation_id ORDER BY min(t.id) LIMIT ${most}`;
    const mine = waiting.slice(0, share(waiting.length));
    const turns = await claimHeads(db, mine, node, leaseMs);
    const more = turns.length < mine.length || mine.length === most;
    return { turns, more, left: waiting.length - mine.length };
  },
  /**
   * Claims a turn among `claimableTurns` for the program of an external agent: the given one, or without
   * an id the oldest. `busy`: there is one, but another unit owns its conversation now.
   */
  async claimExternalTurn(
    db: Sql,
    { agentId, turnId }: { agentId: number; turnId: number | null },
    leaseMs: number,
  ): Promise<{ turn: TurnRecord | null; busy: boolean }> {
    const heads = await db.all<TurnHead>`
      SELECT h.id, h.conversation_id FROM (${claimable(agentId)}) h
      WHERE h.id = coalesce(${turnId}, h.id) ORDER BY h.id LIMIT 1`;
    const [turn = null] = await claimHeads(db, heads, EXTERNAL_NODE, leaseMs);
    return { turn, busy: turn === null && heads.length > 0 };
  },
  /**
   * Claims turns of external agents that nobody is expected to answer, so that they can be failed: at
   * most one for each agent and conversation.
   */
  async claimOfflineTurns(db: Sql, waits: OfflineWaits, leaseMs: number, most: number) {
    const { offlineMs, unclaimedMs } = waits;
    const wasSeen = sql`SELECT 1 FROM agent_presence p
      WHERE p.account_id = t.agent_id AND p.seen_at > ${NOW} - ${offlineMs}::bigint`;
    // `tries` is 0 for turns that ended without a program.
    const hadTurn = sql`SELECT 1 FROM turns e WHERE e.agent_id = t.agent_id AND e.tries > 0
      AND e.started_at > ${NOW} - ${unclaimedMs}::bigint - ${raw(LONG_TURN_MS)}
      AND e.finished_at > ${NOW} - ${unclaimedMs}::bigint`;
    const heads = await db.all<TurnHead>`
      ${HEADS} AND a.provider = ${EXTERNAL} AND t.refusal IS NULL AND (
        (t.created_at <= ${NOW} - ${offlineMs}::bigint AND NOT EXISTS (${wasSeen}))
        OR (t.created_at <= ${NOW} - ${unclaimedMs}::bigint AND NOT EXISTS (${hadTurn})
          AND NOT EXISTS (SELECT 1 FROM turns r
            WHERE r.agent_id = t.agent_id AND r.status = 'running')))
      GROUP BY t.agent_id, t.conversation_id ORDER BY min(t.id) LIMIT ${most}`;
    return claimHeads(db, heads, EXTERNAL_NODE, leaseMs);
  },
  /**
   * Running turns whose lease has expired, except those of other nodes that are alive, and those whose
   * conversation another unit owns now. Perhaps not all at once. A store of one process also returns the
   * turns that an earlier process has left, whatever their lease.
   */
  async abandonedTurns(db: Sql, node: string): Promise<TurnRecord[]> {
    const abandoned = sql`SELECT t.id, t.conversation_id FROM turns t
      WHERE t.status = 'running' AND ${isAbandoned(node)}`;
    // `+ 0` keeps SQLite from reading all turns in the order of their ids, instead of those that run.
    const found = await db.all<TurnHead>`${abandoned} ORDER BY t.id + 0 LIMIT 100`;
    const free = await ownedAmong(db, found);
    const locked = await db.all<TurnHead>`
      ${abandoned} AND t.id = ANY(${free}::bigint[]) ORDER BY t.id FOR UPDATE SKIP LOCKED`;
    return turnsOf(db, locked);
  },
  /**
   * Takes over an abandoned turn that has streamed nothing, and frees what it has reserved. The same unit
   * has found it with `abandonedTurns`.
   */
  async adoptTurn(db: Sql, id: number, node: string, leaseMs: number): Promise<void> {
    const turn = await turnReads.turn(db, id);
    if (turn) await releaseUsage(db, turn);
    await db.change`
      UPDATE turns SET node = ${node}, lease_until = ${NOW} + ${leaseMs}, reserved = 0,
        estimated_input = 0, input_tokens = NULL WHERE id = ${id}`;
  },
  /**
   * Renews the leases of the turns among these that the node runs. With `leaseMs` 0 they end, so that
   * other nodes take the turns over.
   */
  async renewLeases(db: Sql, node: string, ids: readonly number[], leaseMs: number): Promise<void> {
    // A renewal waits for no lock: nobody takes over a turn that a transaction of this node is changing.
    db.changesUnowned();
    const mode = leaseMs > 0 ? sql`FOR UPDATE SKIP LOCKED` : sql`FOR UPDATE`;
    await db.change`
      UPDATE turns SET lease_until = ${NOW} + ${leaseMs}
      WHERE id IN (SELECT id FROM turns
        WHERE status = 'running' AND node = ${node} AND id = ANY(${ids}::bigint[])
        ORDER BY id ${mode})`;
  },
  /**
   * Gives a claimed turn its message, its model and its start time. The same unit has claimed or read
   * the turn, and has read or inserted the message.
   */
  async beginTurn(
    db: Sql,
    id: number,
    { messageUuid, model, at }: { messageUuid: string; model: string; at: number },
  ): Promise<void> {
    await db.changed`
      UPDATE turns
      SET message_id = (SELECT id FROM messages WHERE uuid = ${messageUuid}), model = ${model},
      started_at = ${at} WHERE id = ${id} RETURNING conversation_id`;
  },
  /**
   * Reserves the most that a turn may spend, in place of what it has reserved before. The turn has
   * begun. The same unit has read it with `turn`, and what its agent has spent with `spending`.
   */
  async reserveTurn(db: Sql, turn: TurnRecord, reservation: Reservation): Promise<void> {
    db.changes(turn.conversation_id);
    const { input_tokens, context_ids, by_operator } = reservation;
    const reserved = await reserveUsage(db, turn, reservation);
    const columns = {
      reserved,
      estimated_input: input_tokens,
      context_ids: json(context_ids),
      by_operator,
      input_tokens: null,
    };
    await db.update("turns", { id: turn.id }, columns);
  },
  /** Stores what the calls of the model have taken so far. */
  async setRounds(db: Sql, id: number, rounds: readonly TurnRound[]): Promise<void> {
    db.changesUnowned();
    await db.update("turns", { id }, { rounds: json(rounds) });
  },
  /** Stores how far the calls of the provider have come. Does nothing once the turn has ended. */
  async setAttempt(db: Sql, id: number, { tries, input_tokens }: TurnAttempt): Promise<void> {
    db.changesUnowned();
    await db.update("turns", { id, status: "running" }, { tries, input_tokens });
  },
  /**
   * Finalizes the message of a running turn, and replaces what the turn has reserved by what it has
   * used. Increments the conversation's counter and returns its new value. The same unit has read the
   * turn with `turn`. Throws when the turn has no message.
   */
  async finishTurn(db: Sql, turn: TurnRecord, finished: FinishedTurn): Promise<number> {
    const { message_id, conversation_id } = turn;
    if (message_id === null) throw new Error(`turn ${turn.id} has no message`);
    const { status, content, mentions, error, usage, at } = finished;
    const version = await incrementCounter(db, conversation_id);
    const shown = json(toShownTurn(turn, finished));
    const [place] = await db.changed<{ seq: number; sender_id: number }>`
      UPDATE messages SET content = ${content}, mentions = ${toStoredMentions(mentions)}::jsonb,
        turn = ${shown}::jsonb, finalized_at = ${at}, version = ${version}
      WHERE id = ${message_id} RETURNING seq, sender_id`;
    if (place) await addMentions(db, mentions, { conversation_id, ...place });
    await Promise.all([
      db.change`DELETE FROM chunks WHERE message_id = ${message_id}`,
      db.index({ id: message_id, conversation_id }, content),
      settleUsage(db, turn, finished),
      db.change`
        UPDATE turns SET status = ${status}, error = ${json(error)}::jsonb, finished_at = ${at},
          input_tokens = ${usage?.input_tokens ?? null},
          output_tokens = ${usage?.output_tokens ?? null}, reserved = 0, node = NULL,
          lease_until = NULL WHERE id = ${turn.id}`,
    ]);
    return version;
  },
};

/** What each dialect does in its own way: see `hot/`. */
export interface HotTurnWrites {
  /**
   * Appends streamed text to the messages of turns that the node runs. Returns the ids of the turns
   * whose text it did not store: the node does not run them any more, or an earlier chunk is missing.
   */
  appendChunks(node: string, chunks: readonly NewChunk[]): Awaitable<number[]>;
  /**
   * Marks a node as alive for `leaseMs`: its turns are not abandoned meanwhile, even if other units lock
   * them so that their leases cannot be renewed.
   */
  renewNode(node: string, leaseMs: number): Awaitable<void>;
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

/** A waiting or abandoned turn that may be claimed. */
interface TurnHead {
  id: number;
  conversation_id: number;
}

/** Selects `TurnHead`s: the first waiting turns where no turn of the agent runs. */
const HEADS = sql`SELECT min(t.id) AS id, t.conversation_id
  FROM turns t JOIN accounts a ON a.id = t.agent_id
  WHERE t.status = 'waiting' AND NOT EXISTS (SELECT 1 FROM turns r WHERE r.status = 'running'
    AND r.agent_id = t.agent_id AND r.conversation_id = t.conversation_id)`;

/** The turns that the program of an external agent can claim. */
const claimable = (agentId: number) => sql`
  ${HEADS} AND t.agent_id = ${agentId} AND t.refusal IS NULL GROUP BY t.conversation_id`;

/** Turns that began earlier are not read to find out whether an agent had one until now. */
const LONG_TURN_MS = 3_600_000;

/**
 * Whether a running turn is abandoned. PostgreSQL: nodes of earlier versions are not in the table, their
 * turns have leases alone. SQLite: one process owns the database, so that a turn which another process
 * runs is left over from a crash.
 */
const isAbandoned = (node: string): Either => ({
  postgres: sql`t.lease_until <= ${NOW} AND (t.node = ${node}
    OR NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = t.node AND n.alive_until > ${NOW}))`,
  sqlite: sql`(t.lease_until <= ${NOW}
    OR (t.node IS NOT ${node} AND t.node IS NOT ${EXTERNAL_NODE}))`,
});

/** Claims those of these turns whose conversations no other transaction holds at this moment. */
async function claimHeads(db: Sql, heads: readonly TurnHead[], node: string, leaseMs: number) {
  const free = await ownedAmong(db, heads);
  if (free.length === 0) return [];
  const claimed = await db.changed<{ id: number }>`
    UPDATE turns SET status = 'running', node = ${node}, lease_until = ${NOW} + ${leaseMs}
    WHERE id = ANY(${free}::bigint[]) AND status = 'waiting' AND NOT EXISTS (
      SELECT 1 FROM turns r WHERE r.status = 'running' AND r.agent_id = turns.agent_id
        AND r.conversation_id = turns.conversation_id) RETURNING id`;
  return turnsOf(db, claimed);
}

/** The ids of the turns whose conversations this unit owns, or no other unit owns now. It owns them then. */
async function ownedAmong(db: Sql, heads: readonly TurnHead[]): Promise<number[]> {
  const owned = await db.ownFree(heads.map(({ conversation_id }) => conversation_id));
  return heads.filter(({ conversation_id }) => owned.includes(conversation_id)).map(({ id }) => id);
}

async function turnsOf(db: Sql, found: readonly { id: number }[]): Promise<TurnRecord[]> {
  if (found.length === 0) return [];
  return db.allAs(toTurn)`
    ${TURNS} WHERE t.id = ANY(${found.map(({ id }) => id)}::bigint[]) ORDER BY t.id`;
}

/** Returns false, and changes nothing, unless as many turns wait as may, and one of them can be folded. */
const foldTurn = (db: Sql, turn: NewTurn) => {
  const waiting = sql`FROM turns WHERE agent_id = ${turn.agent_id}
    AND conversation_id = ${turn.conversation_id} AND status = 'waiting'`;
  return db.hasChanged`
    UPDATE turns SET folded = true,
      trigger_id = (SELECT id FROM messages WHERE uuid = ${turn.trigger_uuid})
    WHERE id = (SELECT max(id) ${waiting} AND open_ended
        AND refusal IS NOT DISTINCT FROM ${turn.refusal})
      AND (SELECT count(*) ${waiting}) >= ${turn.most_waiting}`;
};

/** Selects `TurnRow`s: turns with their agent, conversation, trigger and message. */
const TURNS = sql`SELECT t.id, t.conversation_id, c.uuid AS conversation_uuid,
    g.uuid AS trigger_uuid, g.seq AS trigger_seq, g.sender_id AS trigger_sender_id,
    g.deleted_at IS NOT NULL AS trigger_deleted, t.open_ended, t.folded, t.refusal, t.status, t.node,
    t.message_id, m.uuid AS message_uuid, m.seq AS message_seq, t.model, t.error, t.context_ids,
    t.reserved, t.by_operator, t.estimated_input, t.tries, t.started_at, t.first_token_at,
    t.finished_at, t.input_tokens, t.output_tokens, p.uuid AS continues_uuid, p.seq AS continues_seq,
    t.rounds, ${accountAs("agent")}
  FROM turns t
  JOIN accounts a ON a.id = t.agent_id
  JOIN conversations c ON c.id = t.conversation_id
  JOIN messages g ON g.id = t.trigger_id
  LEFT JOIN messages m ON m.id = t.message_id
  LEFT JOIN messages p ON p.id = t.continues_id`;

type TurnRow = Omit<TurnRecord, "usage" | "charged_input" | "rounds"> & {
  rounds: TurnRecord["rounds"] | null;
  input_tokens: number | null;
  output_tokens: number | null;
};

const readTurn = reader<TurnRow>({
  json: ["error", "context_ids", "rounds"],
  flags: ["trigger_deleted", "open_ended", "folded", "by_operator"],
});

function toTurn(row: object): TurnRecord {
  const { input_tokens, output_tokens, ...turn } = readTurn(row);
  return {
    ...turn,
    charged_input: input_tokens,
    rounds: turn.rounds ?? [],
    usage: input_tokens === null || output_tokens === null ? null : { input_tokens, output_tokens },
  };
}

/** What the message of a finished turn shows of the turn. */
const toShownTurn = (
  { trigger_uuid, continues_uuid, model }: TurnRecord,
  { status, error, usage }: FinishedTurn,
): Turn => ({
  status,
  triggered_by: trigger_uuid,
  model,
  error,
  usage,
  ...(continues_uuid !== null && { continues: continues_uuid }),
});
