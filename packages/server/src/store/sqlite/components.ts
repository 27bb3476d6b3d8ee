import type { ComponentWrites } from "../components.ts";
import { COUNT_USES, DELETE_USE, INSERT_USE, PRUNE_USES } from "../shared/components.ts";
import type { Connection } from "./connection.ts";
import { incrementCounter } from "./counters.ts";

export function componentWrites(db: Connection): ComponentWrites {
  const increment = incrementCounter(db);
  const deleteEarlier = db.change(DELETE_USE);
  const insert = db.change(INSERT_USE);
  const prune = db.change(PRUNE_USES);
  const count = db.change(COUNT_USES);
  return {
    useComponent: (message, { token, by, at }) => {
      deleteEarlier.run(message.id, by.id, token);
      insert.run(message.id, by.id, token, at);
      prune.run(message.id);
      const version = message.finalized ? increment(message.conversation_id) : null;
      count.run(message.id, version);
      return version;
    },
  };
}
