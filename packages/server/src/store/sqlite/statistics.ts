import { NO_STATISTICS, statisticsQuery } from "../shared/statistics.ts";
import type { Statistics, StatisticsReads } from "../statistics.ts";
import type { Connection } from "./connection.ts";

export function statisticsReads(db: Connection): StatisticsReads {
  const all = db.query<Statistics>(statisticsQuery("?1", "?2"));
  return { statistics: ({ day, month }) => all.get(day, month) ?? NO_STATISTICS };
}
