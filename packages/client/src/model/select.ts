import type { MessageWindow, PieceName, Pieces, TypingState } from "../types.ts";
import { shownMessages } from "./shown-messages.ts";
import type { State } from "./state.ts";

const NOBODY: TypingState = { actors: [] };

/** Creates a function that reads a piece of the state. An unchanged piece is the same object. */
export function createSelect(): (state: State, name: PieceName) => Pieces[PieceName] {
  const windows = new Map<string, { inputs: readonly unknown[]; value: MessageWindow }>();

  function selectWindow(name: string, ...inputs: Parameters<typeof shownMessages>): MessageWindow {
    const last = windows.get(name);
    if (last?.inputs.every((input, index) => input === inputs[index])) return last.value;
    const value = shownMessages(...inputs);
    windows.set(name, { inputs, value });
    return value;
  }

  return (state, name) => {
    const [kind = "", id = ""] = name.split(":", 2);
    const changes = state.optimisticChanges[id];
    switch (kind) {
      case "chat":
        return state.chats[id]?.chat ?? null;
      case "messages":
        return selectWindow(name, state.chats[id]?.window ?? null, state.outbox[id], changes);
      case "aside": {
        const { aside = null } = state.chats[id] ?? {};
        return aside && selectWindow(name, aside, undefined, changes);
      }
      case "typing":
        return state.typing[id] ?? NOBODY;
      case "draft":
        return state.drafts[id] ?? "";
      case "blocked":
        return state.blocked.usernames;
      case "chats":
        return state.order;
      default:
        return state[kind as "status" | "me" | "unread" | "agents"];
    }
  };
}
