import type { AccountRecord } from "../accounts.ts";
import type { NewToolCall, ToolCallChange, ToolCallRecord } from "../tool-calls.ts";
import { ACCOUNT, accountOf } from "./accounts.ts";

/** Selects `ToolCallRow`s: calls with their agent, message and conversation. */
export const TOOL_CALL = `SELECT t.uuid AS call_uuid, t.message_id, m.uuid AS message_uuid,
    t.conversation_id, c.uuid AS conversation_uuid, t.agent_id, t.owner_id AS payer_id, t.round,
    t.position, t.text_bytes, t.model_id, t.provider_fields, t.server_id, t.server, t.tool, t.title, t.fingerprint,
    t.arguments,
    t.status, t.result, t.error, t.decided_by, t.note, t.created_at, t.decided_at, t.started_at,
    t.finished_at, t.expires_at, ${ACCOUNT}
  FROM tool_calls t
  JOIN messages m ON m.id = t.message_id
  JOIN conversations c ON c.id = t.conversation_id
  JOIN accounts a ON a.id = t.agent_id`;

export const PENDING_TOOL_CALLS = `${TOOL_CALL} WHERE t.owner_id = $1 AND t.status = 'pending'
  AND t.expires_at > $2 AND m.finalized_at IS NOT NULL ORDER BY t.created_at, t.uuid`;

export const EXPIRED_TOOL_CALLS = `${TOOL_CALL} WHERE t.status = 'pending' AND t.expires_at <= $1
  ORDER BY t.expires_at LIMIT $2`;

export type ToolCallRow = AccountRecord &
  Omit<ToolCallRecord, "uuid" | "agent" | "owner_id" | "arguments" | "provider_fields"> & {
    call_uuid: string;
    payer_id: number;
    arguments: string;
    provider_fields: string | null;
  };

export const toToolCall = (row: ToolCallRow): ToolCallRecord => ({
  uuid: row.call_uuid,
  message_id: row.message_id,
  message_uuid: row.message_uuid,
  conversation_id: row.conversation_id,
  conversation_uuid: row.conversation_uuid,
  agent: accountOf(row),
  agent_id: row.agent_id,
  owner_id: row.payer_id,
  round: row.round,
  position: row.position,
  text_bytes: row.text_bytes,
  model_id: row.model_id,
  provider_fields: row.provider_fields === null ? null : JSON.parse(row.provider_fields),
  server_id: row.server_id,
  server: row.server,
  tool: row.tool,
  title: row.title,
  fingerprint: row.fingerprint,
  arguments: JSON.parse(row.arguments) as Record<string, unknown>,
  status: row.status,
  result: row.result,
  error: row.error,
  decided_by: row.decided_by,
  note: row.note,
  created_at: row.created_at,
  decided_at: row.decided_at,
  started_at: row.started_at,
  finished_at: row.finished_at,
  expires_at: row.expires_at,
});

export const INSERT_TOOL_CALL = `INSERT INTO tool_calls (uuid, message_id, conversation_id, agent_id,
    owner_id, round, position, text_bytes, model_id, provider_fields, server_id, server, tool, title,
    fingerprint, arguments, status, error, created_at, started_at, finished_at, expires_at)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20,
    $21, $22)`;

/** The parameters of `INSERT_TOOL_CALL`. */
export const toolCallValues = (call: NewToolCall) => [
  call.uuid,
  call.message_id,
  call.conversation_id,
  call.agent_id,
  call.owner_id,
  call.round,
  call.position,
  call.text_bytes,
  call.model_id,
  call.provider_fields === null ? null : JSON.stringify(call.provider_fields),
  call.server_id,
  call.server,
  call.tool,
  call.title,
  call.fingerprint,
  JSON.stringify(call.arguments),
  call.status,
  call.error,
  call.created_at,
  call.started_at,
  call.finished_at,
  call.expires_at,
];

const CHANGED_COLUMNS = [
  "status",
  "fingerprint",
  "result",
  "error",
  "decided_by",
  "note",
  "decided_at",
  "started_at",
  "finished_at",
  "expires_at",
] as const;

const CHANGES = CHANGED_COLUMNS.map((column, place) => `${column} = $${place + 2}`).join(", ");

export const UPDATE_TOOL_CALL = `UPDATE tool_calls SET ${CHANGES} WHERE uuid = $1`;

/** The parameters of `UPDATE_TOOL_CALL` after the uuid. */
export const changedValues = (call: ToolCallRecord, change: ToolCallChange) =>
  CHANGED_COLUMNS.map((column) => (change[column] === undefined ? call[column] : change[column]));

/** Selects the `ShownCall`s of a message. */
export const SHOWN_TOOL_CALLS = `SELECT uuid, server, tool, title, status, decided_by, expires_at
  FROM tool_calls WHERE message_id = $1 ORDER BY position`;
