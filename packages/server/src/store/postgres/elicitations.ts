import type { ElicitationReads, ElicitationWrites } from "../elicitations.ts";
import { ELICITATION, type ElicitationRow, toElicitation } from "../shared/elicitations.ts";
import type { Methods } from "./unit.ts";

export const elicitationReads: Methods<keyof ElicitationReads> = {
  elicitation: async (unit, uuid) => {
    const row = await unit.get<ElicitationRow>(`${ELICITATION} WHERE uuid = $1`, uuid);
    return row && toElicitation(row);
  },
};

export const elicitationWrites: Methods<keyof ElicitationWrites> = {
  insertElicitation: async (unit, { uuid, call_uuid, conversation_id, owner_id, schema }) => {
    await unit.change(
      `INSERT INTO elicitations (uuid, call_uuid, conversation_id, owner_id, schema)
       VALUES ($1, $2, $3, $4, $5)`,
      uuid,
      call_uuid,
      conversation_id,
      owner_id,
      JSON.stringify(schema),
    );
  },
  answerElicitation: async (unit, uuid, { action, content }) => {
    await unit.change(
      "UPDATE elicitations SET action = $2, content = $3 WHERE uuid = $1 AND action IS NULL",
      uuid,
      action,
      JSON.stringify(content),
    );
  },
  deleteElicitations: async (unit, callUuid) => {
    await unit.change("DELETE FROM elicitations WHERE call_uuid = $1", callUuid);
  },
};
