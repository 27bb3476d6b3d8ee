import { callOfMessage, type ShownCall } from "../../rules/tool-calls.ts";
import {
  changedValues,
  EXPIRED_TOOL_CALLS,
  INSERT_TOOL_CALL,
  PENDING_TOOL_CALLS,
  SHOWN_TOOL_CALLS,
  TOOL_CALL,
  type ToolCallRow,
  toolCallValues,
  toToolCall,
  UPDATE_TOOL_CALL,
} from "../shared/tool-calls.ts";
import type { ToolCallReads, ToolCallWrites } from "../tool-calls.ts";
import type { Connection } from "./connection.ts";
import { incrementCounter } from "./counters.ts";

export function toolCallReads(db: Connection): ToolCallReads {
  const byId = db.query<ToolCallRow>(`${TOOL_CALL} WHERE t.uuid = ?`);
  const byMessage = db.query<ToolCallRow>(
    `${TOOL_CALL} JOIN json_each(?1) j ON t.message_id = j.value ORDER BY j.key, t.position`,
  );
  const pending = db.query<ToolCallRow>(PENDING_TOOL_CALLS);
  const expired = db.query<ToolCallRow>(EXPIRED_TOOL_CALLS);
  return {
    toolCall: (uuid) => {
      const row = byId.get(uuid);
      if (row) db.own(row.conversation_id);
      return row && toToolCall(row);
    },
    toolCallsOf: (messageIds) => byMessage.all(JSON.stringify(messageIds)).map(toToolCall),
    pendingToolCalls: (ownerId, now) => pending.all(ownerId, now).map(toToolCall),
    expiredToolCalls: (now, limit) => expired.all(now, limit).map(toToolCall),
  };
}

export function toolCallWrites(db: Connection): ToolCallWrites {
  const insert = db.change(INSERT_TOOL_CALL);
  const update = db.change(UPDATE_TOOL_CALL);
  const start = db.change("UPDATE tool_calls SET started_at = ?2 WHERE uuid = ?1");
  const ofMessage = db.query<ShownCall>(SHOWN_TOOL_CALLS);
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
      update.run(call.uuid, ...changedValues(call, change));
      return showCalls(call.message_id, call.conversation_id);
    },
    startToolCall: ({ uuid }, at) => void start.run(uuid, at),
  };
}
