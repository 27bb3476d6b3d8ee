import { callListener } from "../async/call-listener.ts";
import type { PieceName, PieceOf, Pieces, Status } from "../types.ts";
import type { Action } from "./actions.ts";
import { reduce } from "./reducer.ts";
import { createSelect } from "./select.ts";
import { initialState, type State } from "./state.ts";

type ChangeListener = (state: State, before: State) => void;

export interface Store {
  readonly state: State;
  dispatch(action: Action): void;
  get<Name extends PieceName>(name: Name): PieceOf<Name>;
  /** Calls the listener after the piece has changed. Returns a function that unsubscribes. */
  watch(name: PieceName, listener: () => void): () => void;
  /** Calls the listener after every change, before the listeners of `watch`. */
  onChange(listener: ChangeListener): void;
}

interface Watched {
  value: Pieces[PieceName];
  listeners: Set<() => void>;
}

/** Holds the state, and notifies listeners of the pieces that change. */
export function createStore(status: Status): Store {
  let state = initialState(status);
  const watched = new Map<PieceName, Watched>();
  const observers: ChangeListener[] = [];
  const select = createSelect();

  function dispatch(action: Action): void {
    const before = state;
    state = reduce(state, action);
    if (state === before) return;
    for (const observe of observers) observe(state, before);
    for (const [name, piece] of watched) notify(name, piece);
  }

  function notify(name: PieceName, piece: Watched): void {
    const value = select(state, name);
    if (value === piece.value) return;
    piece.value = value;
    for (const listener of [...piece.listeners]) callListener(listener);
  }

  function watch(name: PieceName, listener: () => void): () => void {
    const piece = watched.get(name) ?? { value: select(state, name), listeners: new Set() };
    // A function of its own, so that the same listener can watch twice and stop once.
    const own = () => listener();
    piece.listeners.add(own);
    watched.set(name, piece);
    return () => {
      piece.listeners.delete(own);
      if (piece.listeners.size === 0 && watched.get(name) === piece) watched.delete(name);
    };
  }

  return {
    get state() {
      return state;
    },
    dispatch,
    get: <Name extends PieceName>(name: Name) => select(state, name) as PieceOf<Name>,
    watch,
    onChange: (listener) => void observers.push(listener),
  };
}
