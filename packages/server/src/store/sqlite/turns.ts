import type { Turn } from "@parley/protocol";
import type { AccountRecord } from "../accounts.ts";
import { ACCOUNT, dayOf, turnShown } from "../rows.ts";
import type { ReadTx, WriteTx } from "../store.ts";
import type { FinishedTurn, TurnRecord } from "../turns.ts";
import type { Connection } from "./connection.ts";
import { counterStep, mentionWrites, storeMentions } from "./messages.ts";

type Reads = Pick<ReadTx, "turn" | "turnOfMessage" | "openTurns" | "streamed">;
type Writes = Pick<
  WriteTx,
  | "queueTurn"
  | "dropTurns"
  | "claimTurns"
  | "abandonedTurns"
  | "adoptTurn"
  | "renewLeases"
  | "beginTurn"
  | "reserveTurn"
  | "noteTries"
  | "appendChunks"
  | "finishTurn"
>;

const TURN = `SELECT t.id AS turn_id, t.conversation_id, c.uuid AS conversation_uuid,
    g.uuid AS trigger_uuid, g.seq AS trigger_seq, g.sender_id AS trigger_sender_id, g.deleted_at AS trigger_deleted_at,
    t.open_ended, t.folded, t.refusal, t.status, t.node, t.message_id, m.uuid AS message_uuid, t.model, t.error, t.context_ids,
    t.reserved, t.estimated_input, t.tries, t.started_at, t.first_token_at, t.finished_at, t.input_tokens,
    t.output_tokens, ${ACCOUNT}
  FROM turns t
  JOIN accounts a ON a.id = t.agent_id
  JOIN conversations c ON c.id = t.conversation_id
  JOIN messages g ON g.id = t.trigger_id
  LEFT JOIN messages m ON m.id = t.message_id`;

interface TurnRow extends AccountRecord {
  turn_id: number;
  conversation_id: number;
  conversation_uuid: string;
  trigger_uuid: string;
  trigger_seq: number;
  trigger_sender_id: number;
  trigger_deleted_at: number | null;
  open_ended: number;
  folded: number;
  refusal: string | null;
  status: TurnRecord["status"];
  node: string | null;
  message_id: number | null;
  message_uuid: string | null;
  model: string;
  error: string | null;
  context_ids: string;
  reserved: number;
  estimated_input: number;
  tries: number;
  started_at: number | null;
  first_token_at: number | null;
  finished_at: number | null;
  input_tokens: number | null;
  output_tokens: number | null;
}

function toTurn(row: TurnRow): TurnRecord {
  const { id, username, kind, display_name, version, owner_id, provider } = row;
  return {
    id: row.turn_id,
    agent: { id, username, kind, display_name, version, owner_id, provider },
    conversation_id: row.conversation_id,
    conversation_uuid: row.conversation_uuid,
    trigger_uuid: row.trigger_uuid,
    trigger_seq: row.trigger_seq,
    trigger_sender_id: row.trigger_sender_id,
    trigger_deleted: row.trigger_deleted_at !== null,
    open_ended: row.open_ended === 1,
    folded: row.folded === 1,
    refusal: row.refusal,
    status: row.status,
    node: row.node,
    message_id: row.message_id,
    message_uuid: row.message_uuid,
    model: row.model,
    error: row.error === null ? null : (JSON.parse(row.error) as Turn["error"]),
    context_ids: JSON.parse(row.context_ids) as string[],
    reserved: row.reserved,
    estimated_input: row.estimated_input,
    tries: row.tries,
    started_at: row.started_at,
    first_token_at: row.first_token_at,
    finished_at: row.finished_at,
    usage:
      row.input_tokens === null || row.output_tokens === null
        ? null
        : { input_tokens: row.input_tokens, output_tokens: row.output_tokens },
  };
}

export function turnReads(db: Connection): Reads {
  const byId = db.query<TurnRow>(`${TURN} WHERE t.id = ?`);
  const byMessage = db.query<TurnRow>(`${TURN} WHERE t.message_id = ?`);
  const open = db.query<TurnRow>(
    `${TURN} WHERE t.conversation_id = ? AND t.status IN ('waiting', 'running') ORDER BY t.id`,
  );
  const chunks = db.query<{ text: string }>(
    "SELECT text FROM chunks WHERE message_id = ? ORDER BY byte_offset",
  );
  const one = (row: TurnRow | null) => row && toTurn(row);
  return {
    turn: (id) => one(byId.get(id)),
    turnOfMessage: (message) => one(byMessage.get(message.id)),
    openTurns: (conversationId) => open.all(conversationId).map(toTurn),
    streamed: (messageId) =>
      chunks
        .all(messageId)
        .map(({ text }) => text)
        .join(""),
  };
}

export function turnWrites(db: Connection): Writes {
  const waiting = db.query<{ count: number }>(
    `SELECT count(*) AS count FROM turns
     WHERE agent_id = ? AND conversation_id = ? AND status = 'waiting'`,
  );
  const fold = db.change(
    `UPDATE turns SET folded = 1, trigger_id = (SELECT id FROM messages WHERE uuid = ?3)
     WHERE id = (SELECT max(id) FROM turns WHERE agent_id = ?1 AND conversation_id = ?2
       AND status = 'waiting' AND open_ended = 1 AND refusal IS ?4)`,
  );
  const insert = db.change(
    `INSERT INTO turns (agent_id, conversation_id, trigger_id, open_ended, refusal, status, created_at)
     SELECT ?1, ?2, id, ?4, ?5, 'waiting', ?6 FROM messages WHERE uuid = ?3`,
  );
  const drop = db.change("DELETE FROM turns WHERE id = ? AND status = 'waiting'");
  const next = db.query<{ id: number }>(
    `SELECT min(t.id) AS id FROM turns t WHERE t.status = 'waiting' AND NOT EXISTS (
       SELECT 1 FROM turns r WHERE r.agent_id = t.agent_id
       AND r.conversation_id = t.conversation_id AND r.status = 'running')
     GROUP BY t.agent_id, t.conversation_id ORDER BY id LIMIT ?`,
  );
  const claim = db.change(
    "UPDATE turns SET status = 'running', node = ?2, lease_until = ?3 WHERE id = ?1",
  );
  const byId = db.query<TurnRow>(`${TURN} WHERE t.id = ?`);
  // This file belongs to one process: what another one left running can only be from before.
  const abandoned = db.query<TurnRow>(`${TURN} WHERE t.status = 'running' AND t.node IS NOT ?`);
  const adopt = db.change(
    "UPDATE turns SET node = ?2, lease_until = ?3, reserved = 0, estimated_input = 0 WHERE id = ?1",
  );
  const renew = db.change(
    "UPDATE turns SET lease_until = ?2 WHERE status = 'running' AND node = ?1 AND id = ?3",
  );
  const begin = db.change(
    `UPDATE turns SET message_id = (SELECT id FROM messages WHERE uuid = ?2), model = ?3,
       started_at = ?4 WHERE id = ?1`,
  );
  const reserve = db.change(
    "UPDATE turns SET reserved = ?2, estimated_input = ?3, context_ids = ?4 WHERE id = ?1",
  );
  const tries = db.change("UPDATE turns SET tries = ?2 WHERE id = ?1");
  const chunk = db.change(
    `INSERT INTO chunks (message_id, byte_offset, text)
     SELECT message_id, ?2, ?3 FROM turns WHERE id = ?1 AND status = 'running' AND node = ?4`,
  );
  const firstToken = db.change(
    "UPDATE turns SET first_token_at = ?2 WHERE id = ?1 AND first_token_at IS NULL",
  );
  const usage = usageWrites(db);

  return {
    queueTurn: ({ agent_id, conversation_id, trigger_uuid, open_ended, refusal, ...rest }) => {
      const count = waiting.get(agent_id, conversation_id)?.count ?? 0;
      const folded =
        open_ended &&
        count >= rest.most_waiting &&
        fold.run(agent_id, conversation_id, trigger_uuid, refusal).changes > 0;
      if (folded) return;
      insert.run(agent_id, conversation_id, trigger_uuid, open_ended ? 1 : 0, refusal, rest.at);
    },
    dropTurns: (ids) => {
      for (const id of ids) drop.run(id);
    },
    claimTurns: (node, leaseMs, most) => {
      const turns = next.all(most).map(({ id }) => {
        claim.run(id, node, Date.now() + leaseMs);
        return toTurn(byId.get(id) as TurnRow);
      });
      return { turns, more: turns.length === most };
    },
    abandonedTurns: (node) => abandoned.all(node).map(toTurn),
    adoptTurn: (id, node, leaseMs) => {
      const row = byId.get(id);
      if (row) usage.release(toTurn(row));
      adopt.run(id, node, Date.now() + leaseMs);
    },
    renewLeases: (node, ids, leaseMs) => {
      for (const id of ids) renew.run(node, Date.now() + leaseMs, id);
    },
    beginTurn: (id, { messageUuid, model, at }) => void begin.run(id, messageUuid, model, at),
    reserveTurn: (turn, { input_tokens, output_tokens, context_ids }) => {
      const reserved = input_tokens + output_tokens;
      usage.reserve(turn, reserved);
      reserve.run(turn.id, reserved, input_tokens, JSON.stringify(context_ids));
    },
    noteTries: (id, count) => void tries.run(id, count),
    appendChunks: (node, chunks) =>
      chunks
        .filter(({ turn_id, text, offset, first, at }) => {
          if (chunk.run(turn_id, offset, text, node).changes === 0) return true;
          if (first) firstToken.run(turn_id, at);
          return false;
        })
        .map(({ turn_id }) => turn_id),
    finishTurn: finishTurn(db, usage),
  };
}

function finishTurn(db: Connection, usage: ReturnType<typeof usageWrites>): Writes["finishTurn"] {
  const advance = counterStep(db);
  const mentions = mentionWrites(db);
  const message = db.query<{ seq: number; sender_id: number }>(
    "SELECT seq, sender_id FROM messages WHERE id = ?",
  );
  const finalize = db.change(
    `UPDATE messages SET content = ?2, mentions = ?3, turn = ?4, finalized_at = ?5, version = ?6
     WHERE id = ?1`,
  );
  const finish = db.change(
    `UPDATE turns SET status = ?2, error = ?3, finished_at = ?4, input_tokens = ?5,
       output_tokens = ?6, reserved = 0, node = NULL, lease_until = NULL WHERE id = ?1`,
  );
  const dropChunks = db.change("DELETE FROM chunks WHERE message_id = ?");
  const reindex = db.change("INSERT INTO search_changes (message_id) VALUES (?)");

  return (turn, finished) => {
    const place = message.get(turn.message_id);
    if (turn.message_id === null || !place) throw new Error(`turn ${turn.id} has no message`);
    const version = advance(turn.conversation_id);
    const names = finished.mentions;
    finalize.run(
      turn.message_id,
      finished.content,
      storeMentions(names),
      JSON.stringify(turnShown(turn, finished)),
      finished.at,
      version,
    );
    if (names.length > 0) {
      mentions.add(names, turn.conversation_id, place.seq, place.sender_id);
    }
    dropChunks.run(turn.message_id);
    reindex.run(turn.message_id);
    usage.settle(turn, finished);
    finish.run(
      turn.id,
      finished.status,
      finished.error && JSON.stringify(finished.error),
      finished.at,
      finished.usage?.input_tokens ?? null,
      finished.usage?.output_tokens ?? null,
    );
    return version;
  };
}

/** A turn counts for the day on which it began: there its reservation stands, and there it is settled. */
function usageWrites(db: Connection) {
  const change = db.change(
    `INSERT INTO agent_usage (agent_id, day, conversation_id, turns, failures, input_tokens,
       output_tokens, reserved) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
     ON CONFLICT (agent_id, day, conversation_id) DO UPDATE SET turns = turns + ?4,
       failures = failures + ?5, input_tokens = input_tokens + ?6,
       output_tokens = output_tokens + ?7, reserved = reserved + ?8`,
  );
  const add = (
    { agent, conversation_id, started_at }: TurnRecord,
    figures: {
      turns?: number;
      failures?: number;
      input?: number;
      output?: number;
      reserved: number;
    },
  ) =>
    change.run(
      agent.id,
      dayOf(started_at ?? 0),
      conversation_id,
      figures.turns ?? 0,
      figures.failures ?? 0,
      figures.input ?? 0,
      figures.output ?? 0,
      figures.reserved,
    );
  return {
    reserve: (turn: TurnRecord, reserved: number) => add(turn, { reserved }),
    release: (turn: TurnRecord) => add(turn, { reserved: -turn.reserved }),
    settle: (turn: TurnRecord, { status, usage }: FinishedTurn) =>
      add(turn, {
        turns: 1,
        failures: status === "failed" ? 1 : 0,
        input: usage?.input_tokens ?? 0,
        output: usage?.output_tokens ?? 0,
        reserved: -turn.reserved,
      }),
  };
}
