import type { Turn } from "@parley/protocol";
import { EXTERNAL, EXTERNAL_NODE } from "../rules/agents.ts";
import { type AccountRecord, accountAs } from "./account-records.ts";
import type { Awaitable } from "./awaitable.ts";
import { incrementCounter } from "./counters.ts";
import { addMentions, toStoredMentions } from "./mentions.ts";
import type { MessageRecord } from "./message-records.ts";
import {
  allAs,
  column,
  firstNumber,
  getAs,
  hasChanged,
  NOW,
  reader,
  type Sql,
  type Statement,
  update,
} from "./sql.ts";
import { type Reservation, releaseUsage, reserveUsage, settleUsage } from "./usage.ts";

export const turnReads = {
  /** Whether any turn waits or runs. */
  hasOpenTurns: async (db: Sql) => (await firstNumber(db, OPEN_TURN)) > 0,
  /** A write unit owns its conversation from then on, and no other unit appends to its message. */
  async turn(db: Sql, id: number): Promise<TurnRecord | null> {
    const place = "SELECT conversation_id FROM turns WHERE id = $1";
    // Chunks are appended without owning the conversation: owning the turn holds them off.
    const row = await db.getOwned(place, `${TURNS} WHERE t.id = $1`, id, "turns");
    return row && toTurn(row);
  },
  /** The turn that wrote the message; null for a message that no turn wrote. */
  turnOfMessage: (db: Sql, message: MessageRecord) =>
    getAs(db, toTurn, `${TURNS} WHERE t.message_id = $1`, [message.id]),
  /** Turns of a conversation that wait or run, oldest first. A write unit owns the conversation then. */
  async openTurns(db: Sql, conversationId: number): Promise<TurnRecord[]> {
    await db.own(conversationId);
    return allAs(
      db,
      toTurn,
      `${TURNS} WHERE t.conversation_id = $1 AND t.status IN ('waiting', 'running') ORDER BY t.id`,
      [conversationId],
    );
  },
  /** The conversations in which agents of the owner have turns that wait or run. */
  async conversationsWithOpenTurns(db: Sql, ownerId: number): Promise<number[]> {
    const ofStatus = (status: string) => `SELECT t.conversation_id AS id
      FROM accounts a JOIN turns t ON t.agent_id = a.id
      WHERE a.owner_id = $1 AND t.status = '${status}'`;
    const sql = `${ofStatus("waiting")} UNION ${ofStatus("running")}`;
    return column<number>(db, sql, [ownerId]);
  },
  /** The text that a message has streamed so far; empty once the message is finalized. */
  async streamed(db: Sql, messageId: number): Promise<string> {
    const rows = await db.all<{ text: string }>(
      "SELECT text FROM chunks WHERE message_id = $1 ORDER BY byte_offset",
      [messageId],
    );
    return rows.map(({ text }) => text).join("");
  },
  /** The length of that text in bytes. */
  streamedBytes: (db: Sql, messageId: number) =>
    firstNumber(db, "SELECT max(byte_offset) AS length FROM chunks WHERE message_id = $1", [
      messageId,
    ]),
  /** The turns of an external agent that it can claim now, oldest first, at most `most`. */
  async claimableTurns(db: Sql, agentId: number, most: number): Promise<TurnRecord[]> {
    const sql = `${CLAIMABLE} ORDER BY min(t.id) LIMIT $2`;
    return turnsOf(db, await db.all<TurnHead>(sql, [agentId, most]));
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
    await db.change(
      `INSERT INTO turns (agent_id, conversation_id, trigger_id, open_ended, refusal, status,
         created_at, continues_id)
       SELECT $1, $2, id, $4, $5, 'waiting', $6, (SELECT id FROM messages WHERE uuid = $7)
       FROM messages WHERE uuid = $3`,
      [
        turn.agent_id,
        turn.conversation_id,
        turn.trigger_uuid,
        turn.open_ended,
        turn.refusal,
        turn.at,
        turn.continues_uuid ?? null,
      ],
    );
  },
  /** Deletes the waiting turns among these. The same unit has read them with `openTurns`. */
  async dropTurns(db: Sql, ids: readonly number[]): Promise<void> {
    await db.changed(
      `DELETE FROM turns WHERE id = ANY($1::bigint[]) AND status = 'waiting'
       RETURNING conversation_id`,
      [db.list(ids)],
    );
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
    const waiting = await db.all<TurnHead>(
      `${HEADS} AND (a.provider IS DISTINCT FROM '${EXTERNAL}' OR t.refusal IS NOT NULL)
       GROUP BY t.agent_id, t.conversation_id ORDER BY min(t.id) LIMIT $1`,
      [most],
    );
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
    const heads = await db.all<TurnHead>(
      `SELECT h.id, h.conversation_id FROM (${CLAIMABLE}) h
       WHERE h.id = coalesce($2, h.id) ORDER BY h.id LIMIT 1`,
      [agentId, turnId],
    );
    const [turn = null] = await claimHeads(db, heads, EXTERNAL_NODE, leaseMs);
    return { turn, busy: turn === null && heads.length > 0 };
  },
  /**
   * Claims turns of external agents that nobody is expected to answer, so that they can be failed: at
   * most one for each agent and conversation.
   */
  async claimOfflineTurns(
    db: Sql,
    { offlineMs, unclaimedMs }: OfflineWaits,
    leaseMs: number,
    most: number,
  ): Promise<TurnRecord[]> {
    const heads = await db.all<TurnHead>(OFFLINE_TURNS, [most, offlineMs, unclaimedMs]);
    return claimHeads(db, heads, EXTERNAL_NODE, leaseMs);
  },
  /**
   * Running turns whose lease has expired, except those of other nodes that are alive, and those whose
   * conversation another unit owns now. Perhaps not all at once. A store of one process also returns the
   * turns that an earlier process has left, whatever their lease.
   */
  async abandonedTurns(db: Sql, node: string): Promise<TurnRecord[]> {
    const found = await db.all<TurnHead>(ABANDONED_TURNS, [node]);
    const free = await ownedAmong(db, found);
    return turnsOf(db, await db.all<TurnHead>(LOCK_ABANDONED, [node, db.list(free)]));
  },
  /**
   * Takes over an abandoned turn that has streamed nothing, and frees what it has reserved. The same unit
   * has found it with `abandonedTurns`.
   */
  async adoptTurn(db: Sql, id: number, node: string, leaseMs: number): Promise<void> {
    const turn = await turnReads.turn(db, id);
    if (turn) await releaseUsage(db, turn);
    await db.change(
      `UPDATE turns SET node = $2, lease_until = ${NOW} + $3, reserved = 0, estimated_input = 0,
         input_tokens = NULL WHERE id = $1`,
      [id, node, leaseMs],
    );
  },
  /**
   * Renews the leases of the turns among these that the node runs. With `leaseMs` 0 they end, so that
   * other nodes take the turns over.
   */
  async renewLeases(db: Sql, node: string, ids: readonly number[], leaseMs: number): Promise<void> {
    // A renewal waits for no lock: nobody takes over a turn that a transaction of this node is changing.
    db.changesUnowned();
    const mode = leaseMs > 0 ? "FOR UPDATE SKIP LOCKED" : "FOR UPDATE";
    await db.change(
      `UPDATE turns SET lease_until = ${NOW} + $2
       WHERE id IN (SELECT id FROM turns
         WHERE status = 'running' AND node = $1 AND id = ANY($3::bigint[]) ORDER BY id ${mode})`,
      [node, leaseMs, db.list(ids)],
    );
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
    await db.changed(
      `UPDATE turns SET message_id = (SELECT id FROM messages WHERE uuid = $2), model = $3,
         started_at = $4 WHERE id = $1 RETURNING conversation_id`,
      [id, messageUuid, model, at],
    );
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
      context_ids: db.json(context_ids),
      by_operator,
      input_tokens: null,
    };
    await update(db, "turns", { id: turn.id }, columns);
  },
  /** Stores what the calls of the model have taken so far. */
  async setRounds(db: Sql, id: number, rounds: readonly TurnRound[]): Promise<void> {
    db.changesUnowned();
    await update(db, "turns", { id }, { rounds: db.json(rounds) });
  },
  /** Stores how far the calls of the provider have come. Does nothing once the turn has ended. */
  async setAttempt(db: Sql, id: number, { tries, input_tokens }: TurnAttempt): Promise<void> {
    db.changesUnowned();
    await update(db, "turns", { id, status: "running" }, { tries, input_tokens });
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
    const [place] = await db.changed<{ seq: number; sender_id: number }>(
      `UPDATE messages SET content = $2, mentions = $3::jsonb, turn = $4::jsonb, finalized_at = $5,
         version = $6 WHERE id = $1 RETURNING seq, sender_id`,
      [
        message_id,
        content,
        toStoredMentions(db, mentions),
        db.json(toShownTurn(turn, finished)),
        at,
        version,
      ],
    );
    if (place) await addMentions(db, mentions, { conversation_id, ...place });
    await Promise.all([
      db.change("DELETE FROM chunks WHERE message_id = $1", [message_id]),
      db.index({ id: message_id, conversation_id }, content),
      settleUsage(db, turn, finished),
      db.change(
        `UPDATE turns SET status = $2, error = $3::jsonb, finished_at = $4, input_tokens = $5,
           output_tokens = $6, reserved = 0, node = NULL, lease_until = NULL WHERE id = $1`,
        [
          turn.id,
          status,
          db.json(error),
          at,
          usage?.input_tokens ?? null,
          usage?.output_tokens ?? null,
        ],
      ),
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
const HEADS = `SELECT min(t.id) AS id, t.conversation_id
  FROM turns t JOIN accounts a ON a.id = t.agent_id
  WHERE t.status = 'waiting' AND NOT EXISTS (SELECT 1 FROM turns r WHERE r.status = 'running'
    AND r.agent_id = t.agent_id AND r.conversation_id = t.conversation_id)`;

/** The turns that the program of an external agent, parameter 1, can claim. */
const CLAIMABLE = `${HEADS} AND t.agent_id = $1 AND t.refusal IS NULL GROUP BY t.conversation_id`;

/** Turns that began earlier are not read to find out whether an agent had one until now. */
const LONG_TURN_MS = 3_600_000;

/**
 * At most `$1` turns of external agents that have waited for `$2` and whose agents were not seen since, or
 * that have waited for `$3` and whose agents have had no turn since. `tries` is 0 for turns that ended
 * without a program.
 */
// SQLite uses a partial index only where a query contains exactly its condition.
const OPEN_TURN = `SELECT id FROM (
  SELECT id FROM turns WHERE status = 'waiting' UNION ALL
  SELECT id FROM turns WHERE status = 'running') AS open LIMIT 1`;

const OFFLINE_TURNS = `${HEADS} AND a.provider = '${EXTERNAL}' AND t.refusal IS NULL AND (
    (t.created_at <= ${NOW} - $2::bigint AND NOT EXISTS (SELECT 1 FROM agent_presence p
      WHERE p.account_id = t.agent_id AND p.seen_at > ${NOW} - $2::bigint))
    OR (t.created_at <= ${NOW} - $3::bigint
      AND NOT EXISTS (SELECT 1 FROM turns r WHERE r.agent_id = t.agent_id AND r.status = 'running')
      AND NOT EXISTS (SELECT 1 FROM turns e WHERE e.agent_id = t.agent_id AND e.tries > 0
        AND e.started_at > ${NOW} - $3::bigint - ${LONG_TURN_MS}
        AND e.finished_at > ${NOW} - $3::bigint)))
  GROUP BY t.agent_id, t.conversation_id ORDER BY min(t.id) LIMIT $1`;

/**
 * Whether a running turn is abandoned. PostgreSQL: nodes of earlier versions are not in the table, their
 * turns have leases alone. SQLite: one process owns the database, so that a turn which another process
 * runs is left over from a crash.
 */
const IS_ABANDONED = {
  postgres: `t.lease_until <= ${NOW} AND (t.node = $1
    OR NOT EXISTS (SELECT 1 FROM nodes n WHERE n.id = t.node AND n.alive_until > ${NOW}))`,
  sqlite: `(t.lease_until <= ${NOW} OR (t.node IS NOT $1 AND t.node IS NOT '${EXTERNAL_NODE}'))`,
};

const whereAbandoned = (more: string): Statement => {
  const select = (isAbandoned: string) => `SELECT t.id, t.conversation_id FROM turns t
    WHERE t.status = 'running' AND ${isAbandoned} ${more}`;
  return { postgres: select(IS_ABANDONED.postgres), sqlite: select(IS_ABANDONED.sqlite) };
};

// `+ 0` keeps SQLite from reading all turns in the order of their ids, instead of those that run.
const ABANDONED_TURNS = whereAbandoned("ORDER BY t.id + 0 LIMIT 100");
const LOCK_ABANDONED = whereAbandoned(
  "AND t.id = ANY($2::bigint[]) ORDER BY t.id FOR UPDATE SKIP LOCKED",
);

/** Claims those of these turns whose conversations no other transaction holds at this moment. */
async function claimHeads(
  db: Sql,
  heads: readonly TurnHead[],
  node: string,
  leaseMs: number,
): Promise<TurnRecord[]> {
  const free = await ownedAmong(db, heads);
  if (free.length === 0) return [];
  const claimed = await db.changed<{ id: number }>(
    `UPDATE turns SET status = 'running', node = $2, lease_until = ${NOW} + $3
     WHERE id = ANY($1::bigint[]) AND status = 'waiting' AND NOT EXISTS (
       SELECT 1 FROM turns r WHERE r.status = 'running' AND r.agent_id = turns.agent_id
         AND r.conversation_id = turns.conversation_id) RETURNING id`,
    [db.list(free), node, leaseMs],
  );
  return turnsOf(db, claimed);
}

/** The ids of the turns whose conversations this unit owns, or no other unit owns now. It owns them then. */
async function ownedAmong(db: Sql, heads: readonly TurnHead[]): Promise<number[]> {
  const owned = await db.ownFree(heads.map(({ conversation_id }) => conversation_id));
  return heads.filter(({ conversation_id }) => owned.includes(conversation_id)).map(({ id }) => id);
}

async function turnsOf(db: Sql, found: readonly { id: number }[]): Promise<TurnRecord[]> {
  if (found.length === 0) return [];
  return allAs(db, toTurn, `${TURNS} WHERE t.id = ANY($1::bigint[]) ORDER BY t.id`, [
    db.list(found.map(({ id }) => id)),
  ]);
}

/** Returns false, and changes nothing, unless as many turns wait as may, and one of them can be folded. */
const foldTurn = (db: Sql, turn: NewTurn) =>
  hasChanged(
    db,
    `UPDATE turns SET folded = true, trigger_id = (SELECT id FROM messages WHERE uuid = $3)
     WHERE id = (SELECT max(id) FROM turns WHERE agent_id = $1 AND conversation_id = $2
         AND status = 'waiting' AND open_ended AND refusal IS NOT DISTINCT FROM $4)
       AND (SELECT count(*) FROM turns WHERE agent_id = $1 AND conversation_id = $2
         AND status = 'waiting') >= $5`,
    [turn.agent_id, turn.conversation_id, turn.trigger_uuid, turn.refusal, turn.most_waiting],
  );

/** Selects `TurnRow`s: turns with their agent, conversation, trigger and message. */
const TURNS = `SELECT t.id, t.conversation_id, c.uuid AS conversation_uuid,
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
