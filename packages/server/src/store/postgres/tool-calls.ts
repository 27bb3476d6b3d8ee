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
import { incrementCounter } from "./counters.ts";
import { list, type Methods, type Unit } from "./unit.ts";

export const toolCallReads: Methods<keyof ToolCallReads> = {
  toolCall: async (unit, uuid) => {
    const place = await unit.get<{ conversation_id: number }>(
      "SELECT conversation_id FROM tool_calls WHERE uuid = $1",
      uuid,
    );
    if (!place) return null;
    await unit.own(place.conversation_id);
    const row = await unit.get<ToolCallRow>(`${TOOL_CALL} WHERE t.uuid = $1`, uuid);
    return row && toToolCall(row);
  },
  toolCallsOf: async (unit, messageIds) => {
    if (messageIds.length === 0) return [];
    const rows = await unit.all<ToolCallRow>(
      `${TOOL_CALL} JOIN unnest($1::bigint[]) WITH ORDINALITY AS k(id, place) ON k.id = t.message_id
       ORDER BY k.place, t.position`,
      list(messageIds),
    );
    return rows.map(toToolCall);
  },
  pendingToolCalls: async (unit, ownerId, now) =>
    (await unit.all<ToolCallRow>(PENDING_TOOL_CALLS, ownerId, now)).map(toToolCall),
  expiredToolCalls: async (unit, now, limit) =>
    (await unit.all<ToolCallRow>(EXPIRED_TOOL_CALLS, now, limit)).map(toToolCall),
};

export const toolCallWrites: Methods<keyof ToolCallWrites> = {
  insertToolCall: async (unit, call) => {
    await unit.own(call.conversation_id);
    await unit.write(INSERT_TOOL_CALL, ...toolCallValues(call));
    return showCalls(unit, call.message_id, call.conversation_id);
  },
  updateToolCall: async (unit, call, change) => {
    await unit.own(call.conversation_id);
    await unit.write(UPDATE_TOOL_CALL, call.uuid, ...changedValues(call, change));
    return showCalls(unit, call.message_id, call.conversation_id);
  },
  startToolCall: async (unit, call, at) => {
    await unit.write("UPDATE tool_calls SET started_at = $2 WHERE uuid = $1", call.uuid, at);
  },
};

async function showCalls(unit: Unit, messageId: number, conversationId: number): Promise<number> {
  const version = await incrementCounter(unit, conversationId);
  const rows = await unit.all<ShownCall>(SHOWN_TOOL_CALLS, messageId);
  await unit.write(
    "UPDATE messages SET tool_calls = $2, version = $3 WHERE id = $1",
    messageId,
    rows.map(callOfMessage),
    version,
  );
  return version;
}
