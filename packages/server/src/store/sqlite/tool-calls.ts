import { callOfMessage, type ShownCall } from "../../rules/tool-calls.ts";
import {
  CHANGED_COLUMNS,
  changedValues,
  SHOWN_TOOL_CALL,
  TOOL_CALL,
  TOOL_CALL_COLUMNS,
  type ToolCallRow,
  toolCallValues,
  toToolCall,
} from "../shared/tool-calls.ts";
import type { ToolCallReads, ToolCallWrites } from "../tool-calls.ts";
import type { Connection } from "./connection.ts";
import { incrementCounter } from "./counters.ts";

export function toolCallReads(db: Connection): ToolCallReads {
  const byId = db.query<ToolCallRow>(`${TOOL_CALL} WHERE t.uuid = ?`);
  const byMessage = db.query<ToolCallRow>(
    `${TOOL_CALL} JOIN json_each(?1) j ON t.message_id = j.value ORDER BY j.key, t.position`,
  );
  const pending = db.query<ToolCallRow>(
    `${TOOL_CALL} WHERE t.owner_id = ? AND t.status = 'pending' AND t.expires_at > ?
       AND m.finalized_at IS NOT NULL
     ORDER BY t.created_at, t.uuid`,
  );
  const expired = db.query<ToolCallRow>(
    `${TOOL_CALL} WHERE t.status = 'pending' AND t.expires_at <= ? ORDER BY t.expires_at LIMIT ?`,
  );
  return {
    toolCall: (uuid) => {
      const row = byId.get(uuid);
      return row && toToolCall(row);
    },
    toolCallsOf: (messageIds) => byMessage.all(JSON.stringify(messageIds)).map(toToolCall),
    pendingToolCalls: (ownerId, now) => pending.all(ownerId, now).map(toToolCall),
    expiredToolCalls: (now, limit) => expired.all(now, limit).map(toToolCall),
  };
}

export function toolCallWrites(db: Connection): ToolCallWrites {
  const columns = TOOL_CALL_COLUMNS.split(",");
  const insert = db.change(
    `INSERT INTO tool_calls (${TOOL_CALL_COLUMNS}) VALUES (${columns.map(() => "?").join(", ")})`,
  );
  const update = db.change(
    `UPDATE tool_calls SET ${CHANGED_COLUMNS.map((column) => `${column} = ?`).join(", ")}
     WHERE uuid = ?`,
  );
  const start = db.change("UPDATE tool_calls SET started_at = ?2 WHERE uuid = ?1");
  const ofMessage = db.query<ShownCall>(
    `SELECT ${SHOWN_TOOL_CALL} FROM tool_calls WHERE message_id = ? ORDER BY position`,
  );
  const show = db.change("UPDATE messages SET tool_calls = ?2, version = ?3 WHERE id = ?1");
  const increment = incrementCounter(db);

  function showCalls(messageId: number, conversationId: number): number {
    const version = increment(conversationId);
    const calls = ofMessage.all(messageId).map(callOfMessage);
    show.run(messageId, JSON.stringify(calls), version);
    return version;
  }
  return {
    insertToolCall: (call) => {
      insert.run(...toolCallValues(call));
      return showCalls(call.message_id, call.conversation_id);
    },
    updateToolCall: (call, change) => {
      update.run(...changedValues(call, change), call.uuid);
      return showCalls(call.message_id, call.conversation_id);
    },
    startToolCall: ({ uuid }, at) => void start.run(uuid, at),
  };
}
