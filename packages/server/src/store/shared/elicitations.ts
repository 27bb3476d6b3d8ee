import type { ElicitationAnswer, ElicitationRecord, NewElicitation } from "../elicitations.ts";

export const ELICITATION =
  "SELECT uuid, call_uuid, conversation_id, owner_id, action, content FROM elicitations";

export type ElicitationRow = NewElicitation & {
  action: ElicitationAnswer["action"] | null;
  content: string | null;
};

export const toElicitation = ({ action, content, ...row }: ElicitationRow): ElicitationRecord => ({
  ...row,
  answer:
    action === null
      ? null
      : { action, content: JSON.parse(content ?? "{}") as Record<string, unknown> },
});
