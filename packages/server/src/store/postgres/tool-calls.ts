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
  pendingToolCalls: async (unit, ownerId, now) => {
    const rows = await unit.all<ToolCallRow>(
      `${TOOL_CALL} WHERE t.owner_id = $1 AND t.status = 'pending' AND t.expires_at > $2
         AND m.finalized_at IS NOT NULL
       ORDER BY t.created_at, t.uuid`,
      ownerId,
      now,
    );
    return rows.map(toToolCall);
  },
  expiredToolCalls: async (unit, now, limit) => {
    const rows = await unit.all<ToolCallRow>(
      `${TOOL_CALL} WHERE t.status = 'pending' AND t.expires_at <= $1 ORDER BY t.expires_at LIMIT $2`,
      now,
      limit,
    );
    return rows.map(toToolCall);
  },
};

const PLACES = TOOL_CALL_COLUMNS.split(",").map((_, place) => `$${place + 1}`);
const CHANGES = CHANGED_COLUMNS.map((column, place) => `${column} = $${place + 2}`);

export const toolCallWrites: Methods<keyof ToolCallWrites> = {
  insertToolCall: async (unit, call) => {
    await unit.own(call.conversation_id);
    await unit.change(
      `INSERT INTO tool_calls (${TOOL_CALL_COLUMNS}) VALUES (${PLACES.join(", ")})`,
      ...toolCallValues(call),
    );
    return showCalls(unit, call.message_id, call.conversation_id);
  },
  updateToolCall: async (unit, call, change) => {
    await unit.own(call.conversation_id);
    await unit.change(
      `UPDATE tool_calls SET ${CHANGES.join(", ")} WHERE uuid = $1`,
      call.uuid,
      ...changedValues(call, change),
    );
    return showCalls(unit, call.message_id, call.conversation_id);
  },
  startToolCall: async (unit, call, at) => {
    await unit.change("UPDATE tool_calls SET started_at = $2 WHERE uuid = $1", call.uuid, at);
  },
};

async function showCalls(unit: Unit, messageId: number, conversationId: number): Promise<number> {
  const version = await incrementCounter(unit, conversationId);
  const rows = await unit.all<ShownCall>(
    `SELECT ${SHOWN_TOOL_CALL} FROM tool_calls WHERE message_id = $1 ORDER BY position`,
    messageId,
  );
  await unit.change(
    "UPDATE messages SET tool_calls = $2, version = $3 WHERE id = $1",
    messageId,
    rows.map(callOfMessage),
    version,
  );
  return version;
}
