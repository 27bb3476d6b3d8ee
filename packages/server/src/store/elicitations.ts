import type { Sql } from "./sql.ts";

/** Questions that tools ask the owners of agents during a call. */
export const elicitationReads = {
  elicitation: (db: Sql, uuid: string) =>
    db.getAs(toElicitation)`
      SELECT uuid, call_uuid, conversation_id, owner_id, schema, action, content
      FROM elicitations WHERE uuid = ${uuid}`,
  /**
   * The questions that the owner has not answered, oldest first. Includes those in messages that were
   * deleted since, and in messages that the owner cannot see any more.
   */
  openElicitations: (db: Sql, ownerId: number) =>
    // Questions of earlier versions have no message.
    db.all<OpenElicitation>`
      SELECT message_uuid, call_uuid FROM elicitations
      WHERE owner_id = ${ownerId} AND action IS NULL AND message_uuid IS NOT NULL ORDER BY uuid`,
};

export const elicitationWrites = {
  async insertElicitation(db: Sql, asked: NewElicitation): Promise<void> {
    db.changes(asked.conversation_id);
    await db.insert("elicitations", { ...asked, schema: JSON.stringify(asked.schema) });
  },
  /** Stores the answer, unless the question has one. The unit owns the conversation. */
  async answerElicitation(db: Sql, uuid: string, { action, content }: ElicitationAnswer) {
    await db.changed`
      UPDATE elicitations SET action = ${action}, content = ${JSON.stringify(content)}
      WHERE uuid = ${uuid} AND action IS NULL RETURNING conversation_id`;
  },
  /**
   * Deletes the questions in these messages that have no answer, and returns their UUIDs. The unit owns
   * the conversation.
   */
  async cancelElicitations(db: Sql, messageUuids: readonly string[]): Promise<string[]> {
    const cancelled = await db.changed<{ uuid: string }>`
      DELETE FROM elicitations WHERE action IS NULL AND message_uuid = ANY(${messageUuids}::uuid[])
      RETURNING uuid, conversation_id`;
    return cancelled.map(({ uuid }) => uuid);
  },
  /**
   * Deletes the questions that were asked during a call, and their answers. The unit owns the
   * conversation.
   */
  async deleteElicitations(db: Sql, callUuid: string): Promise<void> {
    await db.changed`
      DELETE FROM elicitations WHERE call_uuid = ${callUuid} RETURNING conversation_id`;
  },
};

export interface NewElicitation {
  readonly uuid: string;
  readonly call_uuid: string;
  readonly conversation_id: number;
  readonly owner_id: number;
  /** The message with the form. */
  readonly message_uuid: string;
  /** The JSON Schema of what is asked for. */
  readonly schema: Readonly<Record<string, unknown>>;
}

export type OpenElicitation = Pick<NewElicitation, "message_uuid" | "call_uuid">;

export interface ElicitationAnswer {
  readonly action: "accept" | "decline";
  readonly content: Readonly<Record<string, unknown>>;
}

export interface ElicitationRecord extends Omit<NewElicitation, "message_uuid"> {
  readonly answer: ElicitationAnswer | null;
}

type ElicitationRow = Omit<ElicitationRecord, "schema" | "answer"> & {
  schema: string | null;
  action: ElicitationAnswer["action"] | null;
  content: string | null;
};

const toElicitation = ({ schema, action, content, ...row }: ElicitationRow): ElicitationRecord => ({
  ...row,
  schema: JSON.parse(schema ?? "{}") as Record<string, unknown>,
  answer: action && { action, content: JSON.parse(content ?? "{}") as Record<string, unknown> },
});
