import type { ElicitationReads, ElicitationWrites, OpenElicitation } from "../elicitations.ts";
import {
  ANSWER_ELICITATION,
  ELICITATION,
  type ElicitationRow,
  elicitationValues,
  INSERT_ELICITATION,
  OPEN_ELICITATIONS,
  toElicitation,
} from "../shared/elicitations.ts";
import { list, type Methods } from "./unit.ts";

export const elicitationReads: Methods<keyof ElicitationReads> = {
  elicitation: async (unit, uuid) => {
    const row = await unit.get<ElicitationRow>(`${ELICITATION} WHERE uuid = $1`, uuid);
    return row && toElicitation(row);
  },
  openElicitations: (unit, ownerId) => unit.all<OpenElicitation>(OPEN_ELICITATIONS, ownerId),
};

export const elicitationWrites: Methods<keyof ElicitationWrites> = {
  insertElicitation: async (unit, asked) => {
    await unit.write(INSERT_ELICITATION, ...elicitationValues(asked));
  },
  answerElicitation: async (unit, uuid, { action, content }) => {
    await unit.write(ANSWER_ELICITATION, uuid, action, JSON.stringify(content));
  },
  cancelElicitations: async (unit, messageUuids) => {
    const rows = await unit.write<{ uuid: string }>(
      `DELETE FROM elicitations WHERE action IS NULL AND message_uuid = ANY($1::uuid[])
       RETURNING uuid`,
      list(messageUuids),
    );
    return rows.map(({ uuid }) => uuid);
  },
  deleteElicitations: async (unit, callUuid) => {
    await unit.write("DELETE FROM elicitations WHERE call_uuid = $1", callUuid);
  },
};
