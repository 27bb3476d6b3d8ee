import type { OptimisticChange, State } from "./state.ts";
import { setEntry } from "./structural-sharing.ts";

/** Edits, reactions and deletions that are shown before the server has confirmed them. */
export type OptimisticAction =
  | { type: "changeStarted"; chatId: string; change: OptimisticChange }
  /** The server has confirmed or refused the change. */
  | { type: "changeEnded"; chatId: string; changeId: string };

export function reduceOptimistic(state: State, action: OptimisticAction): State {
  const { chatId } = action;
  const before = state.optimisticChanges[chatId] ?? [];
  const changes =
    action.type === "changeStarted"
      ? [...before, action.change]
      : before.filter(({ changeId }) => changeId !== action.changeId);
  const kept = changes.length > 0 ? changes : undefined;
  return { ...state, optimisticChanges: setEntry(state.optimisticChanges, chatId, kept) };
}
