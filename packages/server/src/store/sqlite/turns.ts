import type { Turn } from "@parley/protocol";
import { EXTERNAL_NODE } from "../../rules/agents.ts";
import {
  BEGIN_TURN,
  CLAIMABLE_TURNS,
  FINALIZE_MESSAGE,
  FINISH_TURN,
  FOLD_TURN,
  foldValues,
  INSERT_TURN,
  NEXT_EXTERNAL_TURN,
  NEXT_TURNS,
  OPEN_TURNS,
  offlineTurns,
  RESERVE_TURN,
  SET_ATTEMPT,
  TURN,
  type TurnHead,
  type TurnRow,
  toShownTurn,
  toTurn,
  turnValues,
} from "../shared/turns.ts";
import { newReservation, releasedUsage, settledUsage } from "../shared/usage.ts";
import type { TurnReads, TurnRecord, TurnRound, TurnWrites } from "../turns.ts";
import type { Connection } from "./connection.ts";
import { incrementCounter } from "./counters.ts";
import { mentionAdder, storedMentions } from "./mentions.ts";
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

function owned(db: Connection, row: StoredTurnRow): TurnRecord {
  db.own(row.conversation_id);
  return parsed(row);
}

export function turnReads(db: Connection): TurnReads {
  const byId = db.query<StoredTurnRow>(`${TURN} WHERE t.id = ?`);
  const byMessage = db.query<StoredTurnRow>(`${TURN} WHERE t.message_id = ?`);
  const open = db.query<StoredTurnRow>(OPEN_TURNS);
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
    `${TURN} WHERE t.id IN (SELECT id FROM (${CLAIMABLE_TURNS})) ORDER BY t.id`,
  );
  const one = (row: StoredTurnRow | null) => row && owned(db, row);
  return {
    turn: (id) => one(byId.get(id)),
    turnOfMessage: (message) => one(byMessage.get(message.id)),
    openTurns: (conversationId) => {
      db.own(conversationId);
      return open.all(conversationId).map(parsed);
    },
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
  const fold = db.change(FOLD_TURN);
  const insert = db.change(INSERT_TURN);
  const drop = db.change("DELETE FROM turns WHERE id = ? AND status = 'waiting'");
  const next = db.query<TurnHead>(NEXT_TURNS);
  const nextExternal = db.query<TurnHead>(NEXT_EXTERNAL_TURN);
  const nextOffline = db.query<TurnHead>(offlineTurns({ seen: "$2", claimed: "$3" }));
  const claim = db.change(
    "UPDATE turns SET status = 'running', node = ?2, lease_until = ?3 WHERE id = ?1",
  );
  const byId = db.query<StoredTurnRow>(`${TURN} WHERE t.id = ?`);
  const claimed = (id: number, node: string, leaseMs: number) => {
    claim.run(id, node, Date.now() + leaseMs);
    return owned(db, byId.get(id) as StoredTurnRow);
  };

  return {
    queueTurn: (turn) => {
      if (turn.open_ended && fold.run(...foldValues(turn)).changes > 0) return;
      insert.run(...turnValues(turn));
    },
    dropTurns: (ids) => {
      for (const id of ids) drop.run(id);
    },
    claimTurns: (node, leaseMs, most, share = (waiting) => waiting) => {
      const waiting = next.all(most);
      const mine = waiting.slice(0, share(waiting.length));
      const turns = mine.map(({ id }) => claimed(id, node, leaseMs));
      return { turns, more: mine.length === most, left: waiting.length - mine.length };
    },
    claimExternalTurn: ({ agentId, turnId }, leaseMs) => {
      const head = nextExternal.get(agentId, turnId);
      return { turn: head && claimed(head.id, EXTERNAL_NODE, leaseMs), busy: false };
    },
    claimOfflineTurns: ({ offlineMs, unclaimedMs }, leaseMs, most) =>
      nextOffline
        .all(most, before(offlineMs), before(unclaimedMs))
        .map(({ id }) => claimed(id, EXTERNAL_NODE, leaseMs)),
  };
}

const before = (ms: number | null) => (ms === null ? null : Date.now() - ms);

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
    `UPDATE turns SET node = ?2, lease_until = ?3, reserved = 0, estimated_input = 0,
       input_tokens = NULL WHERE id = ?1`,
  );
  const renew = db.change(
    "UPDATE turns SET lease_until = ?2 WHERE status = 'running' AND node = ?1 AND id = ?3",
  );
  const addToUsage = addUsage(db);

  return {
    abandonedTurns: (node) => abandoned.all(node, Date.now()).map((row) => owned(db, row)),
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
): Pick<TurnWrites, "beginTurn" | "reserveTurn" | "setRounds" | "setAttempt" | "appendChunks"> {
  const begin = db.change(BEGIN_TURN);
  const reserve = db.change(RESERVE_TURN);
  const rounds = db.change("UPDATE turns SET rounds = ?2 WHERE id = ?1");
  const attempt = db.change(SET_ATTEMPT);
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
      reserve.run(turn.id, reserved, reservation.input_tokens, ids, reservation.by_operator);
    },
    setRounds: (id, all) => void rounds.run(id, JSON.stringify(all)),
    setAttempt: (id, { tries, input_tokens }) => void attempt.run(id, tries, input_tokens),
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
  const addMentions = mentionAdder(db);
  const finalize = db.change<{ seq: number; sender_id: number }>(FINALIZE_MESSAGE);
  const finish = db.change(FINISH_TURN);
  const dropChunks = db.change("DELETE FROM chunks WHERE message_id = ?");
  const reindex = db.change("INSERT INTO search_changes (message_id) VALUES (?)");

  return (turn, finished) => {
    if (turn.message_id === null) throw new Error(`turn ${turn.id} has no message`);
    const version = increment(turn.conversation_id);
    const names = finished.mentions;
    const place = finalize.get(
      turn.message_id,
      finished.content,
      storedMentions(names),
      JSON.stringify(toShownTurn(turn, finished)),
      finished.at,
      version,
    );
    if (place && names.length > 0) {
      addMentions(names, turn.conversation_id, place.seq, place.sender_id);
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
