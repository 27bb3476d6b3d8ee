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
import type { Connection } from "./connection.ts";

export function usageReads(db: Connection): UsageReads {
  const spent = db.query<SpentRow>(SPENT);
  const recent = db.query<{ count: number }>(TURNS_SINCE);
  const usage = db.query<UsageRow>(USAGE);
  const operatorSpent = db.query<{ used: number }>(OPERATOR_SPENT);
  return {
    operatorSpending: (ownerId, provider, now) =>
      operatorSpent.get(ownerId, provider, dayOf(now))?.used ?? 0,
    spending: (agentId, conversationId, now) =>
      toSpending(
        spent.all(agentId, dayOf(now)),
        conversationId,
        recent.get(agentId, now - TURN_WINDOW_MS)?.count ?? 0,
      ),
    usage: (ownerId, since, until) => {
      const { first, last } = daysOf(since, until);
      return usage.all(ownerId, first, last);
    },
  };
}

export function addUsage(db: Connection) {
  const add = db.change(ADD_USAGE);
  return (delta: UsageDelta): void => void add.run(...usageValues(delta));
}
