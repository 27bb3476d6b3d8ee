import type { Awaitable } from "./awaitable.ts";

export interface StatisticsReads {
  /** People are active if they have used a session since the given times. */
  statistics(activeSince: { day: number; month: number }): Awaitable<Statistics>;
}

export interface Statistics {
  readonly people: number;
  readonly suspended: number;
  readonly active_day: number;
  readonly active_month: number;
  readonly conversations: number;
  /** From the highest id: counting all of them would take long. */
  readonly messages: number;
  /** Turns of agents that wait or run. */
  readonly open_turns: number;
}
