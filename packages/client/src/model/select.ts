import type { MessageWindow, PieceName, Pieces, TypingState } from "../types.ts";
import { createAddLocalUrls } from "./local-urls.ts";
import { shownMessages } from "./shown-messages.ts";
import type { State } from "./state.ts";

const NOBODY: TypingState = { actors: [] };

interface Selected {
  inputs: readonly unknown[];
  localUrls: State["localUrls"];
  /** The window without object URLs, and with them. */
  plain: MessageWindow;
  value: MessageWindow;
}

/** Creates a function that reads a piece of the state. An unchanged piece is the same object. */
export function createSelect(): (state: State, name: PieceName) => Pieces[PieceName] {
  const windows = new Map<string, Selected>();
  const addLocalUrls = createAddLocalUrls();

  function selectWindow(
    name: string,
    localUrls: State["localUrls"],
    ...inputs: Parameters<typeof shownMessages>
  ): MessageWindow {
    const last = windows.get(name);
    const isSame = last?.inputs.every((input, index) => input === inputs[index]) ?? false;
    if (last && isSame && last.localUrls === localUrls) return last.value;
    const plain = last && isSame ? last.plain : shownMessages(...inputs);
    const next = addLocalUrls(plain, localUrls);
    const value = last && isSame && hasSameItems(last.value, next) ? last.value : next;
    windows.set(name, { inputs, localUrls, plain, value });
    return value;
  }

  return (state, name) => {
    const [kind = "", id = ""] = name.split(":", 2);
    const { localUrls } = state;
    const changes = state.optimisticChanges[id];
    switch (kind) {
      case "chat":
        return state.chats[id]?.chat ?? null;
      case "messages": {
        const { window = null } = state.chats[id] ?? {};
        return selectWindow(name, localUrls, window, state.outbox[id], changes);
      }
      case "aside": {
        const { aside = null } = state.chats[id] ?? {};
        return aside && selectWindow(name, localUrls, aside, undefined, changes);
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

const hasSameItems = (one: MessageWindow, other: MessageWindow): boolean =>
  one.items.length === other.items.length &&
  one.items.every((message, index) => message === other.items[index]);
