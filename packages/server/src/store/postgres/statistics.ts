import { NO_STATISTICS, statisticsQuery } from "../shared/statistics.ts";
import type { Statistics, StatisticsReads } from "../statistics.ts";
import type { Methods } from "./unit.ts";

const QUERY = statisticsQuery("$1", "$2");

export const statisticsReads: Methods<keyof StatisticsReads> = {
  statistics: async (unit, { day, month }) =>
    (await unit.get<Statistics>(QUERY, day, month)) ?? NO_STATISTICS,
};
