import type { ComponentWrites } from "../components.ts";
import { KEPT_USES } from "../shared/components.ts";
import { incrementCounter } from "./counters.ts";
import type { Methods } from "./unit.ts";

export const componentWrites: Methods<keyof ComponentWrites> = {
  useComponent: async (unit, { id, conversation_id, finalized }, { token, by, at }) => {
    await unit.own(conversation_id);
    await unit.change(
      "DELETE FROM component_uses WHERE message_id = $1 AND account_id = $2 AND token = $3",
      id,
      by.id,
      token,
    );
    await unit.change(
      `INSERT INTO component_uses (message_id, account_id, token, used_at)
       VALUES ($1, $2, $3, $4)`,
      id,
      by.id,
      token,
      at,
    );
    await unit.change(
      `DELETE FROM component_uses WHERE message_id = $1 AND id NOT IN (
         SELECT id FROM component_uses WHERE message_id = $1 ORDER BY id DESC LIMIT ${KEPT_USES})`,
      id,
    );
    const version = finalized ? await incrementCounter(unit, conversation_id) : null;
    await unit.change(
      `UPDATE messages SET version = coalesce($2::bigint, version),
         uses = (SELECT count(*) FROM component_uses WHERE message_id = $1) WHERE id = $1`,
      id,
      version,
    );
    return version;
  },
};
