import { NO_STATISTICS, STATISTICS } from "../shared/statistics.ts";
import type { Statistics, StatisticsReads } from "../statistics.ts";
import type { Methods } from "./unit.ts";

export const statisticsReads: Methods<keyof StatisticsReads> = {
  statistics: async (unit, { day, month }) =>
    (await unit.get<Statistics>(STATISTICS, day, month)) ?? NO_STATISTICS,
};
