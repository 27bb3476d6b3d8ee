import type { ComponentWrites } from "../components.ts";
import { COUNT_USES, DELETE_USE, INSERT_USE, PRUNE_USES } from "../shared/components.ts";
import { incrementCounter } from "./counters.ts";
import type { Methods } from "./unit.ts";

export const componentWrites: Methods<keyof ComponentWrites> = {
  useComponent: async (unit, { id, conversation_id, finalized }, { token, by, at }) => {
    await unit.own(conversation_id);
    await unit.change(DELETE_USE, id, by.id, token);
    await unit.change(INSERT_USE, id, by.id, token, at);
    await unit.change(PRUNE_USES, id);
    const version = finalized ? await incrementCounter(unit, conversation_id) : null;
    await unit.change(COUNT_USES, id, version);
    return version;
  },
};
