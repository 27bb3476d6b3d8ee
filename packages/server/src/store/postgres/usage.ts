import type { UsageRow } from "@parley/protocol";
import { dayOf } from "../../rules/time.ts";
import {
  ADD_USAGE,
  daysOf,
  OPERATOR_SPENT,
  SPENT,
  type SpentRow,
  TURN_WINDOW_MS,
  TURNS_SINCE,
  toSpending,
  USAGE,
  type UsageDelta,
  usageValues,
} from "../shared/usage.ts";
import type { UsageReads } from "../usage.ts";
import type { Methods, Unit } from "./unit.ts";

export const usageReads: Methods<keyof UsageReads> = {
  operatorSpending: async (unit, ownerId, provider, now) => {
    // The next unit that spends for any agent of the owner, on any node, sees what this one reserves.
    await unit.ownRow("accounts", ownerId);
    const row = await unit.get<{ used: number }>(OPERATOR_SPENT, ownerId, provider, dayOf(now));
    return row?.used ?? 0;
  },
  spending: async (unit, agentId, conversationId, now) => {
    // The next unit that spends for the agent, on any node, sees what this one reserves.
    await unit.ownRow("accounts", agentId);
    const [spent, recent] = await Promise.all([
      unit.all<SpentRow>(SPENT, agentId, dayOf(now)),
      unit.get<{ count: number }>(TURNS_SINCE, agentId, now - TURN_WINDOW_MS),
    ]);
    return toSpending(spent, conversationId, recent?.count ?? 0);
  },
  usage: (unit, ownerId, since, until) => {
    const { first, last } = daysOf(since, until);
    return unit.all<UsageRow>(USAGE, ownerId, first, last);
  },
};

export async function addUsage(unit: Unit, delta: UsageDelta): Promise<void> {
  await unit.write(ADD_USAGE, ...usageValues(delta));
}
