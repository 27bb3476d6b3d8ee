import { NO_STATISTICS, STATISTICS } from "../shared/statistics.ts";
import type { Statistics, StatisticsReads } from "../statistics.ts";
import type { Connection } from "./connection.ts";

export function statisticsReads(db: Connection): StatisticsReads {
  const all = db.query<Statistics>(STATISTICS);
  return { statistics: ({ day, month }) => all.get(day, month) ?? NO_STATISTICS };
}
