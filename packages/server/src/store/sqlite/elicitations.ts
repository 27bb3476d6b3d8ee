import type { ElicitationReads, ElicitationWrites } from "../elicitations.ts";
import { ELICITATION, type ElicitationRow, toElicitation } from "../shared/elicitations.ts";
import type { Connection } from "./connection.ts";

export function elicitationReads(db: Connection): ElicitationReads {
  const byId = db.query<ElicitationRow>(`${ELICITATION} WHERE uuid = ?`);
  return {
    elicitation: (uuid) => {
      const row = byId.get(uuid);
      return row && toElicitation(row);
    },
  };
}

export function elicitationWrites(db: Connection): ElicitationWrites {
  const insert = db.change(
    `INSERT INTO elicitations (uuid, call_uuid, conversation_id, owner_id, schema)
     VALUES (?, ?, ?, ?, ?)`,
  );
  const answer = db.change(
    "UPDATE elicitations SET action = ?2, content = ?3 WHERE uuid = ?1 AND action IS NULL",
  );
  const remove = db.change("DELETE FROM elicitations WHERE call_uuid = ?");
  return {
    insertElicitation: ({ uuid, call_uuid, conversation_id, owner_id, schema }) =>
      void insert.run(uuid, call_uuid, conversation_id, owner_id, JSON.stringify(schema)),
    answerElicitation: (uuid, { action, content }) =>
      void answer.run(uuid, action, JSON.stringify(content)),
    deleteElicitations: (callUuid) => void remove.run(callUuid),
  };
}
