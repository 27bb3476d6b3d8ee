import type { ComponentWrites } from "../components.ts";
import { COUNT_USES, DELETE_USE, INSERT_USE, PRUNE_USES } from "../shared/components.ts";
import { incrementCounter } from "./counters.ts";
import type { Methods } from "./unit.ts";

export const componentWrites: Methods<keyof ComponentWrites> = {
  useComponent: async (unit, { id, conversation_id, finalized }, { token, by, at }) => {
    await unit.own(conversation_id);
    await unit.write(DELETE_USE, id, by.id, token);
    await unit.write(INSERT_USE, id, by.id, token, at);
    await unit.write(PRUNE_USES, id);
    const version = finalized ? await incrementCounter(unit, conversation_id) : null;
    await unit.write(COUNT_USES, id, version);
    return version;
  },
};
