import type { ElicitationAnswer, ElicitationRecord, NewElicitation } from "../elicitations.ts";

export const ELICITATION =
  "SELECT uuid, call_uuid, conversation_id, owner_id, schema, action, content FROM elicitations";

/** Questions of earlier versions have no message. */
export const OPEN_ELICITATIONS = `SELECT message_uuid, call_uuid FROM elicitations
  WHERE owner_id = $1 AND action IS NULL AND message_uuid IS NOT NULL ORDER BY uuid`;

export const INSERT_ELICITATION = `INSERT INTO elicitations
    (uuid, call_uuid, conversation_id, owner_id, message_uuid, schema)
  VALUES ($1, $2, $3, $4, $5, $6)`;

/** The parameters of `INSERT_ELICITATION`. */
export const elicitationValues = (asked: NewElicitation) => [
  asked.uuid,
  asked.call_uuid,
  asked.conversation_id,
  asked.owner_id,
  asked.message_uuid,
  JSON.stringify(asked.schema),
];

export const ANSWER_ELICITATION =
  "UPDATE elicitations SET action = $2, content = $3 WHERE uuid = $1 AND action IS NULL";

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
