import { onMessage } from "./chats.ts";
import { type ChatState, loadedMessage, type State } from "./state.ts";
import { append, type Delta } from "./stream.ts";
import { put } from "./structural-sharing.ts";

/** A message with more of its stream; what does not fit yet waits for what is missing. */
export function streamed(state: State, id: string, deltas: readonly Delta[]): State {
  const chatId = streamingChat(state, id);
  const all = [...(state.early[id] ?? []), ...deltas];
  let early: readonly Delta[] = [];
  const next =
    chatId === undefined
      ? state
      : onMessage(state, chatId, id, (message) => {
          if (message.finalized_at !== null) return message;
          const appended = append(message, all);
          // The window and the list may have come to know it at different times.
          if (appended.early.length > early.length) early = appended.early;
          return appended.message;
        });
  return { ...next, early: put(next.early, id, early.length > 0 ? early : undefined) };
}

/** Chunks that came too early are appended as soon as what was missing is there. */
export function released(state: State): State {
  return Object.entries(state.early).reduce((next, [id, deltas]) => {
    const after = streamed(next, id, []);
    return after.early[id]?.length === deltas.length ? next : after;
  }, state);
}

function streamingChat(state: State, id: string): string | undefined {
  const holds = (each: ChatState) =>
    each.chat.last_message?.id === id || loadedMessage(each, id) !== undefined;
  return Object.values(state.chats).find(holds)?.chat.id;
}
