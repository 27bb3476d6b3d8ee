import type { State } from "../model/state.ts";

/** Whether a reply belongs to another history than what was fetched before. */
export const isOtherHistory = (
  { historyId }: Pick<State, "historyId">,
  { history_id = historyId }: { history_id?: string | null },
): boolean => historyId !== null && history_id !== historyId;
