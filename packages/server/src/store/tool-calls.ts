import { callOfMessage, type DetailedCall, type ShownCall } from "../rules/tool-calls.ts";
import type { ContextCall } from "../rules/tool-context.ts";
import { type AccountRecord, accountAs } from "./account-records.ts";
import { incrementCounter } from "./counters.ts";
import { json, reader, type Sql, sql } from "./sql.ts";

/** What agents asked tools for. Deleting a message deletes its calls. */
export const toolCallReads = {
  /** A write unit owns the conversation of the call from then on. */
  async toolCall(db: Sql, uuid: string): Promise<ToolCallRecord | null> {
    const row = await db.getOwned(
      sql`SELECT conversation_id FROM tool_calls WHERE uuid = ${uuid}`,
      sql`${TOOL_CALLS} WHERE t.uuid = ${uuid}`,
    );
    return row && readCall(row);
  },
  /** The calls of messages, in the given order of these, then as the model asked for them. */
  async toolCallsOf(db: Sql, messageIds: readonly number[]): Promise<ToolCallRecord[]> {
    if (messageIds.length === 0) return [];
    return db.allAs(readCall)`
      ${TOOL_CALLS} JOIN unnest(${messageIds}::bigint[]) WITH ORDINALITY AS k (id, place)
        ON k.id = t.message_id
      ORDER BY k.place, t.position`;
  },
  /** The oldest calls of complete messages that the owner of their agents can decide about, oldest first. */
  pendingToolCalls: (db: Sql, ownerId: number, now: number, limit = Number.MAX_SAFE_INTEGER) =>
    db.allAs(readCall)`
      ${TOOL_CALLS} WHERE t.owner_id = ${ownerId} AND t.status = 'pending'
        AND t.expires_at > ${now} AND m.finalized_at IS NOT NULL
      ORDER BY t.created_at, t.uuid LIMIT ${limit}`,
  /** Pending calls whose time is over at `now`, at most `limit`, the earliest first. */
  expiredToolCalls: (db: Sql, now: number, limit: number) =>
    db.allAs(readCall)`
      ${TOOL_CALLS} WHERE t.status = 'pending' AND t.expires_at <= ${now}
      ORDER BY t.expires_at LIMIT ${limit}`,
};

/** The unit owns the conversation of the call. */
export const toolCallWrites = {
  /**
   * Adds a call to the calls of a message, increments the conversation's counter and returns its new
   * value.
   */
  async insertToolCall(db: Sql, call: NewToolCall): Promise<number> {
    db.changes(call.conversation_id);
    await db.insert("tool_calls", {
      ...call,
      provider_fields: call.provider_fields && JSON.stringify(call.provider_fields),
      arguments: JSON.stringify(call.arguments),
    });
    return showCalls(db, call);
  },
  /**
   * Changes a call, which the same unit has read with `toolCall`, increments the conversation's counter
   * and returns its new value.
   */
  async updateToolCall(db: Sql, call: ToolCallRecord, change: ToolCallChange): Promise<number> {
    db.changes(call.conversation_id);
    await db.update("tool_calls", { uuid: call.uuid }, change);
    return showCalls(db, call);
  },
  /**
   * Stores that an approved call is about to be made, so that no other process makes it too. The same
   * unit has read it with `toolCall`.
   */
  async startToolCall(db: Sql, call: ToolCallRecord, at: number): Promise<void> {
    db.changes(call.conversation_id);
    await db.update("tool_calls", { uuid: call.uuid }, { started_at: at });
  },
};

export interface ToolCallRecord extends DetailedCall, ContextCall {
  readonly message_id: number;
  readonly message_uuid: string;
  readonly conversation_id: number;
  readonly conversation_uuid: string;
  readonly agent: AccountRecord;
  readonly agent_id: number;
  /** Its place among the calls of the message. */
  readonly position: number;
  /** The fingerprint of the tool for which the call was asked; null for built-in tools. */
  readonly fingerprint: string | null;
}

export type NewToolCall = Omit<
  ToolCallRecord,
  "message_uuid" | "conversation_uuid" | "agent" | "result" | "decided_by" | "note" | "decided_at"
>;

/** What may change of a call. A field that is left out stays. */
export type ToolCallChange = Pick<ToolCallRecord, "status"> &
  Partial<
    Pick<
      ToolCallRecord,
      | "fingerprint"
      | "result"
      | "error"
      | "decided_by"
      | "note"
      | "decided_at"
      | "started_at"
      | "finished_at"
      | "expires_at"
    >
  >;

/** Selects calls with their agent, message and conversation. */
const TOOL_CALLS = sql`SELECT t.uuid, t.message_id, m.uuid AS message_uuid,
    t.conversation_id, c.uuid AS conversation_uuid, t.agent_id, t.owner_id, t.round,
    t.position, t.text_bytes, t.model_id, t.provider_fields, t.server_id, t.server, t.tool, t.title,
    t.fingerprint, t.arguments, t.status, t.result, t.error, t.decided_by, t.note, t.created_at,
    t.decided_at, t.started_at, t.finished_at, t.expires_at, ${accountAs("agent")}
  FROM tool_calls t
  JOIN messages m ON m.id = t.message_id
  JOIN conversations c ON c.id = t.conversation_id
  JOIN accounts a ON a.id = t.agent_id`;

const readCall = reader<ToolCallRecord>({ json: ["provider_fields", "arguments"] });

/** Makes a message show its calls as they are now. */
async function showCalls(
  db: Sql,
  { message_id, conversation_id }: Pick<ToolCallRecord, "message_id" | "conversation_id">,
): Promise<number> {
  const version = await incrementCounter(db, conversation_id);
  const calls = await db.all<ShownCall>`
    SELECT uuid, server, tool, title, status, decided_by, expires_at
    FROM tool_calls WHERE message_id = ${message_id} ORDER BY position`;
  const tool_calls = json(calls.map(callOfMessage));
  await db.update("messages", { id: message_id }, { tool_calls, version });
  return version;
}
