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
import type { Connection } from "./connection.ts";

export function elicitationReads(db: Connection): ElicitationReads {
  const byId = db.query<ElicitationRow>(`${ELICITATION} WHERE uuid = ?`);
  const open = db.query<OpenElicitation>(OPEN_ELICITATIONS);
  return {
    elicitation: (uuid) => {
      const row = byId.get(uuid);
      return row && toElicitation(row);
    },
    openElicitations: (ownerId) => open.all(ownerId),
  };
}

export function elicitationWrites(db: Connection): ElicitationWrites {
  const insert = db.change(INSERT_ELICITATION);
  const answer = db.change(ANSWER_ELICITATION);
  const cancel = db.change<{ uuid: string }>(
    `DELETE FROM elicitations WHERE action IS NULL
       AND message_uuid IN (SELECT value FROM json_each(?)) RETURNING uuid`,
  );
  const remove = db.change("DELETE FROM elicitations WHERE call_uuid = ?");
  return {
    insertElicitation: (asked) => void insert.run(...elicitationValues(asked)),
    answerElicitation: (uuid, { action, content }) =>
      void answer.run(uuid, action, JSON.stringify(content)),
    cancelElicitations: (messageUuids) =>
      cancel.all(JSON.stringify(messageUuids)).map(({ uuid }) => uuid),
    deleteElicitations: (callUuid) => void remove.run(callUuid),
  };
}
