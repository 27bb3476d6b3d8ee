import type { ElicitationReads, ElicitationWrites } from "../elicitations.ts";
import {
  ELICITATION,
  type ElicitationRow,
  OPEN_ELICITATIONS,
  toElicitation,
} from "../shared/elicitations.ts";
import type { Connection } from "./connection.ts";

export function elicitationReads(db: Connection): ElicitationReads {
  const byId = db.query<ElicitationRow>(`${ELICITATION} WHERE uuid = ?`);
  const open = db.query<{ message_uuid: string }>(OPEN_ELICITATIONS);
  return {
    elicitation: (uuid) => {
      const row = byId.get(uuid);
      return row && toElicitation(row);
    },
    openElicitations: (ownerId) => open.all(ownerId).map(({ message_uuid }) => message_uuid),
  };
}

export function elicitationWrites(db: Connection): ElicitationWrites {
  const insert = db.change(
    `INSERT INTO elicitations (uuid, call_uuid, conversation_id, owner_id, message_uuid, schema)
     VALUES (?, ?, ?, ?, ?, ?)`,
  );
  const answer = db.change(
    "UPDATE elicitations SET action = ?2, content = ?3 WHERE uuid = ?1 AND action IS NULL",
  );
  const cancel = db.change<{ uuid: string }>(
    `DELETE FROM elicitations WHERE action IS NULL
       AND message_uuid IN (SELECT value FROM json_each(?)) RETURNING uuid`,
  );
  const remove = db.change("DELETE FROM elicitations WHERE call_uuid = ?");
  return {
    insertElicitation: ({ uuid, call_uuid, conversation_id, owner_id, message_uuid, schema }) => {
      const values = [uuid, call_uuid, conversation_id, owner_id, message_uuid];
      insert.run(...values, JSON.stringify(schema));
    },
    answerElicitation: (uuid, { action, content }) =>
      void answer.run(uuid, action, JSON.stringify(content)),
    cancelElicitations: (messageUuids) =>
      cancel.all(JSON.stringify(messageUuids)).map(({ uuid }) => uuid),
    deleteElicitations: (callUuid) => void remove.run(callUuid),
  };
}
