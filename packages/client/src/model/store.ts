import type { MessageWindow, PieceName, PieceOf, Pieces, Status, TypingState } from "../types.ts";
import { shownMessages } from "./outbox.ts";
import { type Action, reduce } from "./reducer.ts";
import { initialState, type State } from "./state.ts";

export interface Store {
  readonly state: State;
  dispatch(action: Action): void;
  get<Name extends PieceName>(name: Name): PieceOf<Name>;
  watch(name: PieceName, listener: () => void): () => void;
  /** Hears of every change, before those who watch a piece. */
  onChange(listener: (state: State, before: State) => void): void;
}

interface Watched {
  seen: Pieces[PieceName];
  listeners: Set<() => void>;
}

/** Holds the state and tells those who watch a piece of it when that piece has changed. */
export function createStore(status: Status): Store {
  let state = initialState(status);
  const watched = new Map<PieceName, Watched>();
  const observers: ((state: State, before: State) => void)[] = [];
  const select = selector();

  function dispatch(action: Action): void {
    const before = state;
    state = reduce(state, action);
    if (state === before) return;
    for (const observe of observers) observe(state, before);
    for (const [name, piece] of watched) tell(name, piece);
  }

  function tell(name: PieceName, piece: Watched): void {
    const now = select(state, name);
    if (now === piece.seen) return;
    piece.seen = now;
    for (const listener of [...piece.listeners]) listener();
  }

  return {
    get state() {
      return state;
    },
    dispatch,
    get: <Name extends PieceName>(name: Name) => select(state, name) as PieceOf<Name>,
    watch(name, listener) {
      const piece = watched.get(name) ?? { seen: select(state, name), listeners: new Set() };
      // The same function may watch twice, and each time stops only itself.
      const own = () => listener();
      piece.listeners.add(own);
      watched.set(name, piece);
      return () => {
        piece.listeners.delete(own);
        if (piece.listeners.size === 0 && watched.get(name) === piece) watched.delete(name);
      };
    },
    onChange: (listener) => void observers.push(listener),
  };
}

const NOBODY: TypingState = { actors: [] };

/** Finds a piece of the state. The same state gives the same object. */
function selector(): (state: State, name: PieceName) => Pieces[PieceName] {
  const shown = new Map<string, { made: readonly unknown[]; value: MessageWindow }>();

  function window(name: string, ...made: Parameters<typeof shownMessages>): MessageWindow {
    const last = shown.get(name);
    if (last?.made.every((part, place) => part === made[place])) return last.value;
    const value = shownMessages(...made);
    shown.set(name, { made, value });
    return value;
  }

  return (state, name) => {
    const [kind = "", id = ""] = name.split(":", 2);
    switch (kind) {
      case "chat":
        return state.chats[id]?.chat ?? null;
      case "messages":
        return window(name, state.chats[id]?.window ?? null, state.outbox[id], state.changes[id]);
      case "aside": {
        const { aside = null } = state.chats[id] ?? {};
        return aside && window(name, aside, undefined, state.changes[id]);
      }
      case "typing":
        return state.typing[id] ?? NOBODY;
      case "draft":
        return state.drafts[id] ?? "";
      case "chats":
        return state.order;
      default:
        return state[kind as "status" | "me" | "unread" | "agents"];
    }
  };
}
