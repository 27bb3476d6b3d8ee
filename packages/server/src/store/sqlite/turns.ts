import type { Turn } from "@parley/protocol";
import { EXTERNAL, EXTERNAL_NODE } from "../../rules/agents.ts";
import { TURN, type TurnRow, toShownTurn, toTurn } from "../shared/turns.ts";
import { newReservation, releasedUsage, settledUsage } from "../shared/usage.ts";
import type { TurnReads, TurnRecord, TurnRound, TurnWrites } from "../turns.ts";
import type { Connection } from "./connection.ts";
import { incrementCounter } from "./counters.ts";
import { mentionWrites, storedMentions } from "./mentions.ts";
import { streamedText } from "./message-views.ts";
import { addUsage } from "./usage.ts";

type StoredTurnRow = Omit<TurnRow, "error" | "context_ids" | "rounds"> & {
  error: string | null;
  rounds: string | null;
  context_ids: string;
};

const parsed = (row: StoredTurnRow): TurnRecord =>
  toTurn({
    ...row,
    error: row.error === null ? null : (JSON.parse(row.error) as Turn["error"]),
    context_ids: JSON.parse(row.context_ids) as string[],
    rounds: row.rounds === null ? null : (JSON.parse(row.rounds) as TurnRound[]),
  });

/** The first waiting turns where no turn of the agent runs. A condition and `GROUP BY` follow. */
const HEADS = `SELECT min(t.id) AS id FROM turns t JOIN accounts a ON a.id = t.agent_id
  WHERE t.status = 'waiting' AND NOT EXISTS (SELECT 1 FROM turns r WHERE r.agent_id = t.agent_id
    AND r.conversation_id = t.conversation_id AND r.status = 'running')`;

export function turnReads(db: Connection): TurnReads {
  const byId = db.query<StoredTurnRow>(`${TURN} WHERE t.id = ?`);
  const byMessage = db.query<StoredTurnRow>(`${TURN} WHERE t.message_id = ?`);
  const open = db.query<StoredTurnRow>(
    `${TURN} WHERE t.conversation_id = ? AND t.status IN ('waiting', 'running') ORDER BY t.id`,
  );
  const openOfOwner = db.query<{ id: number }>(
    `SELECT t.conversation_id AS id FROM accounts a JOIN turns t ON t.agent_id = a.id
     WHERE a.owner_id = ?1 AND t.status = 'waiting'
     UNION SELECT t.conversation_id FROM accounts a JOIN turns t ON t.agent_id = a.id
     WHERE a.owner_id = ?1 AND t.status = 'running'`,
  );
  const bytes = db.query<{ length: number | null }>(
    "SELECT max(byte_offset) AS length FROM chunks WHERE message_id = ?",
  );
  const claimable = db.query<StoredTurnRow>(
    `${TURN} WHERE t.id IN (${HEADS} AND t.agent_id = ?1 AND t.refusal IS NULL
       GROUP BY t.conversation_id) ORDER BY t.id LIMIT ?2`,
  );
  const one = (row: StoredTurnRow | null) => row && parsed(row);
  return {
    turn: (id) => one(byId.get(id)),
    turnOfMessage: (message) => one(byMessage.get(message.id)),
    openTurns: (conversationId) => open.all(conversationId).map(parsed),
    conversationsWithOpenTurns: (ownerId) => openOfOwner.all(ownerId).map(({ id }) => id),
    streamed: streamedText(db),
    streamedBytes: (messageId) => bytes.get(messageId)?.length ?? 0,
    claimableTurns: (agentId, most) => claimable.all(agentId, most).map(parsed),
  };
}

export const turnWrites = (db: Connection): TurnWrites => ({
  ...waitingTurnWrites(db),
  ...leaseWrites(db),
  ...runningTurnWrites(db),
  finishTurn: finishTurn(db),
});

function waitingTurnWrites(
  db: Connection,
): Pick<
  TurnWrites,
  "queueTurn" | "dropTurns" | "claimTurns" | "claimExternalTurn" | "claimOfflineTurns"
> {
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
    `INSERT INTO turns (agent_id, conversation_id, trigger_id, open_ended, refusal, status, created_at,
       continues_id)
     SELECT ?1, ?2, id, ?4, ?5, 'waiting', ?6, (SELECT id FROM messages WHERE uuid = ?7)
     FROM messages WHERE uuid = ?3`,
  );
  const drop = db.change("DELETE FROM turns WHERE id = ? AND status = 'waiting'");
  const next = db.query<{ id: number }>(
    `${HEADS} AND (a.provider IS NOT '${EXTERNAL}' OR t.refusal IS NOT NULL)
     GROUP BY t.agent_id, t.conversation_id ORDER BY id LIMIT ?`,
  );
  const nextExternal = db.query<{ id: number }>(
    `SELECT h.id FROM (${HEADS} AND t.agent_id = ?1 AND t.refusal IS NULL
       GROUP BY t.conversation_id) h WHERE ?2 IS NULL OR h.id = ?2 ORDER BY h.id LIMIT 1`,
  );
  const nextOffline = db.query<{ id: number }>(
    `${HEADS} AND a.provider = '${EXTERNAL}' AND t.refusal IS NULL AND t.created_at <= ?1
       AND NOT EXISTS (SELECT 1 FROM agent_presence p
         WHERE p.account_id = t.agent_id AND p.seen_at > ?1)
     GROUP BY t.agent_id, t.conversation_id ORDER BY id LIMIT ?2`,
  );
  const claim = db.change(
    "UPDATE turns SET status = 'running', node = ?2, lease_until = ?3 WHERE id = ?1",
  );
  const byId = db.query<StoredTurnRow>(`${TURN} WHERE t.id = ?`);
  const claimed = (id: number, node: string, leaseMs: number) => {
    claim.run(id, node, Date.now() + leaseMs);
    return parsed(byId.get(id) as StoredTurnRow);
  };

  return {
    queueTurn: ({ agent_id, conversation_id, trigger_uuid, open_ended, refusal, ...rest }) => {
      const count = waiting.get(agent_id, conversation_id)?.count ?? 0;
      const folded =
        open_ended &&
        count >= rest.most_waiting &&
        fold.run(agent_id, conversation_id, trigger_uuid, refusal).changes > 0;
      if (folded) return;
      const { at, continues_uuid = null } = rest;
      const isOpen = open_ended ? 1 : 0;
      insert.run(agent_id, conversation_id, trigger_uuid, isOpen, refusal, at, continues_uuid);
    },
    dropTurns: (ids) => {
      for (const id of ids) drop.run(id);
    },
    claimTurns: (node, leaseMs, most) => {
      const turns = next.all(most).map(({ id }) => claimed(id, node, leaseMs));
      return { turns, more: turns.length === most };
    },
    claimExternalTurn: ({ agentId, turnId }, leaseMs) => {
      const head = nextExternal.get(agentId, turnId);
      return { turn: head && claimed(head.id, EXTERNAL_NODE, leaseMs), busy: false };
    },
    claimOfflineTurns: (waitedMs, leaseMs, most) =>
      nextOffline
        .all(Date.now() - waitedMs, most)
        .map(({ id }) => claimed(id, EXTERNAL_NODE, leaseMs)),
  };
}

function leaseWrites(
  db: Connection,
): Pick<TurnWrites, "abandonedTurns" | "adoptTurn" | "renewNode" | "renewLeases"> {
  const byId = db.query<StoredTurnRow>(`${TURN} WHERE t.id = ?`);
  // One process owns the database: a turn that another process runs is left over from a crash.
  const abandoned = db.query<StoredTurnRow>(
    `${TURN} WHERE t.status = 'running'
       AND (t.lease_until <= ?2 OR (t.node IS NOT ?1 AND t.node IS NOT '${EXTERNAL_NODE}'))`,
  );
  const adopt = db.change(
    "UPDATE turns SET node = ?2, lease_until = ?3, reserved = 0, estimated_input = 0 WHERE id = ?1",
  );
  const renew = db.change(
    "UPDATE turns SET lease_until = ?2 WHERE status = 'running' AND node = ?1 AND id = ?3",
  );
  const addToUsage = addUsage(db);

  return {
    abandonedTurns: (node) => abandoned.all(node, Date.now()).map(parsed),
    adoptTurn: (id, node, leaseMs) => {
      const row = byId.get(id);
      if (row) addToUsage(releasedUsage(parsed(row)));
      adopt.run(id, node, Date.now() + leaseMs);
    },
    // There are no others who would ask.
    renewNode: () => {},
    renewLeases: (node, ids, leaseMs) => {
      for (const id of ids) renew.run(node, Date.now() + leaseMs, id);
    },
  };
}

function runningTurnWrites(
  db: Connection,
): Pick<TurnWrites, "beginTurn" | "reserveTurn" | "setRounds" | "setTries" | "appendChunks"> {
  const begin = db.change(
    `UPDATE turns SET message_id = (SELECT id FROM messages WHERE uuid = ?2), model = ?3,
       started_at = ?4 WHERE id = ?1`,
  );
  const reserve = db.change(
    `UPDATE turns SET reserved = ?2, estimated_input = ?3, context_ids = ?4, by_operator = ?5
       WHERE id = ?1`,
  );
  const rounds = db.change("UPDATE turns SET rounds = ?2 WHERE id = ?1");
  const tries = db.change("UPDATE turns SET tries = ?2 WHERE id = ?1");
  // Apart from the insertion: a statement that reads the table it inserts into needs a temporary one.
  const place = db.query<{ message_id: number }>(
    `SELECT message_id FROM turns t WHERE id = ?1 AND status = 'running' AND node = ?4
       AND ?2 - octet_length(?3) = coalesce(
         (SELECT max(c.byte_offset) FROM chunks c WHERE c.message_id = t.message_id), 0)`,
  );
  const chunk = db.change("INSERT INTO chunks (message_id, byte_offset, text) VALUES (?, ?, ?)");
  const firstToken = db.change(
    "UPDATE turns SET first_token_at = ?2 WHERE id = ?1 AND first_token_at IS NULL",
  );
  const addToUsage = addUsage(db);

  return {
    beginTurn: (id, { messageUuid, model, at }) => void begin.run(id, messageUuid, model, at),
    reserveTurn: (turn, reservation) => {
      const { reserved, usage } = newReservation(turn, reservation);
      addToUsage(usage);
      const ids = JSON.stringify(reservation.context_ids);
      const { input_tokens, by_operator } = reservation;
      reserve.run(turn.id, reserved, input_tokens, ids, Number(by_operator));
    },
    setRounds: (id, all) => void rounds.run(id, JSON.stringify(all)),
    setTries: (id, count) => void tries.run(id, count),
    appendChunks: (node, chunks) =>
      chunks
        .filter(({ turn_id, text, offset, first, at }) => {
          const answer = place.get(turn_id, offset, text, node);
          if (!answer) return true;
          chunk.run(answer.message_id, offset, text);
          if (first) firstToken.run(turn_id, at);
          return false;
        })
        .map(({ turn_id }) => turn_id),
  };
}

function finishTurn(db: Connection): TurnWrites["finishTurn"] {
  const increment = incrementCounter(db);
  const addToUsage = addUsage(db);
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
    const version = increment(turn.conversation_id);
    const names = finished.mentions;
    finalize.run(
      turn.message_id,
      finished.content,
      storedMentions(names),
      JSON.stringify(toShownTurn(turn, finished)),
      finished.at,
      version,
    );
    if (names.length > 0) {
      mentions.add(names, turn.conversation_id, place.seq, place.sender_id);
    }
    dropChunks.run(turn.message_id);
    reindex.run(turn.message_id);
    addToUsage(settledUsage(turn, finished));
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
