import { appendDeltas, type Delta } from "./append-deltas.ts";
import { updateMessage } from "./chats.ts";
import { type ChatState, loadedMessage, type State } from "./state.ts";
import { setEntry } from "./structural-sharing.ts";

/** Appends deltas to a message. Deltas that leave a gap are kept in `earlyDeltas`. */
export function applyDeltas(state: State, id: string, deltas: readonly Delta[]): State {
  const chatId = chatOfMessage(state, id);
  const all = [...(state.earlyDeltas[id] ?? []), ...deltas];
  let early: readonly Delta[] = [];
  const next =
    chatId === undefined
      ? state
      : updateMessage(state, chatId, id, (message) => {
          if (message.finalized_at !== null) return message;
          const appended = appendDeltas(message, all);
          // The copies in the window and in the list may differ in length: keep what the shorter needs.
          if (appended.early.length > early.length) early = appended.early;
          return appended.message;
        });
  const earlyDeltas = setEntry(next.earlyDeltas, id, early.length > 0 ? early : undefined);
  return { ...next, earlyDeltas };
}

/** Appends early deltas whose gap is closed. */
export function applyEarlyDeltas(state: State): State {
  return Object.entries(state.earlyDeltas).reduce((next, [id, deltas]) => {
    const after = applyDeltas(next, id, []);
    return after.earlyDeltas[id]?.length === deltas.length ? next : after;
  }, state);
}

/** Shows what an agent does right now, until its message is complete. */
export function setTurnStatus(state: State, id: string, text: string): State {
  const chatId = chatOfMessage(state, id);
  if (chatId === undefined) return state;
  return updateMessage(state, chatId, id, (message) =>
    message.finalized_at === null ? { ...message, turn_status: text } : message,
  );
}

function chatOfMessage(state: State, id: string): string | undefined {
  const hasMessage = (each: ChatState) =>
    each.chat.last_message?.id === id || loadedMessage(each, id) !== undefined;
  return Object.values(state.chats).find(hasMessage)?.chat.id;
}
