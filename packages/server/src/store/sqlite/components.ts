import type { ComponentWrites } from "../components.ts";
import { KEPT_USES } from "../shared/components.ts";
import type { Connection } from "./connection.ts";
import { incrementCounter } from "./counters.ts";

export function componentWrites(db: Connection): ComponentWrites {
  const increment = incrementCounter(db);
  const deleteEarlier = db.change(
    "DELETE FROM component_uses WHERE message_id = ? AND account_id = ? AND token = ?",
  );
  const insert = db.change(
    "INSERT INTO component_uses (message_id, account_id, token, used_at) VALUES (?, ?, ?, ?)",
  );
  const prune = db.change(
    `DELETE FROM component_uses WHERE message_id = ?1 AND id NOT IN (
       SELECT id FROM component_uses WHERE message_id = ?1 ORDER BY id DESC LIMIT ${KEPT_USES})`,
  );
  const updateMessage = db.change(
    `UPDATE messages SET version = coalesce(?2, version),
       uses = (SELECT count(*) FROM component_uses WHERE message_id = ?1) WHERE id = ?1`,
  );
  return {
    useComponent: (message, { token, by, at }) => {
      deleteEarlier.run(message.id, by.id, token);
      insert.run(message.id, by.id, token, at);
      prune.run(message.id);
      const version = message.finalized ? increment(message.conversation_id) : null;
      updateMessage.run(message.id, version);
      return version;
    },
  };
}
