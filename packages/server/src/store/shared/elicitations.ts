import type { ElicitationAnswer, ElicitationRecord, NewElicitation } from "../elicitations.ts";

export const ELICITATION =
  "SELECT uuid, call_uuid, conversation_id, owner_id, schema, action, content FROM elicitations";

export type ElicitationRow = Omit<NewElicitation, "schema"> & {
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
