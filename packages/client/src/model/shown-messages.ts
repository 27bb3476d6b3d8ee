import type { LocalMessage, MessageWindow } from "../types.ts";
import { setReaction } from "./message.ts";
import type { OptimisticChange, Window } from "./state.ts";

const NOT_LOADED: MessageWindow = {
  items: [],
  changes: [],
  hasOlder: false,
  hasNewer: false,
  loaded: false,
};

/** The messages that a client shows: those of the window with unsent ones and optimistic changes. */
export function shownMessages(
  window: Window | null,
  outbox: readonly LocalMessage[] = [],
  changes: readonly OptimisticChange[] = [],
): MessageWindow {
  if (!window && outbox.length === 0) return NOT_LOADED;
  const items = window?.items ?? [];
  return {
    items: changes.reduce(applyChange, outbox.length > 0 ? [...items, ...outbox] : items),
    changes: window?.changes ?? NOT_LOADED.changes,
    hasOlder: window?.floor != null,
    hasNewer: window?.ceiling != null,
    loaded: window !== null,
  };
}

function applyChange(
  items: readonly LocalMessage[],
  change: OptimisticChange,
): readonly LocalMessage[] {
  if (change.kind === "remove") return items.filter(({ id }) => !change.ids.includes(id));
  return items.map((message) => {
    if (message.id !== change.id) return message;
    if (change.kind === "react") return setReaction(message, change.emoji, change.on);
    return { ...message, content: change.content, edited_at: change.at };
  });
}
