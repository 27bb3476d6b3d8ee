import type { ElicitationAnswer, ElicitationRecord } from "../elicitations.ts";

export const ELICITATION =
  "SELECT uuid, call_uuid, conversation_id, owner_id, schema, action, content FROM elicitations";

/** Questions of earlier versions have no message. */
export const OPEN_ELICITATIONS = `SELECT message_uuid FROM elicitations
  WHERE owner_id = $1 AND action IS NULL AND message_uuid IS NOT NULL ORDER BY uuid`;

export type ElicitationRow = Omit<ElicitationRecord, "schema" | "answer"> & {
  schema: string | null;
  action: ElicitationAnswer["action"] | null;
  content: string | null;
};

export const toElicitation = ({
  schema,
  action,
  content,
  ...row
}: ElicitationRow): ElicitationRecord => ({
  ...row,
  schema: JSON.parse(schema ?? "{}") as Record<string, unknown>,
  answer:
    action === null
      ? null
      : { action, content: JSON.parse(content ?? "{}") as Record<string, unknown> },
});
