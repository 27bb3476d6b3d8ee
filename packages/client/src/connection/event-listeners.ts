import type { EventFrame, EventName } from "@parley/protocol";
import { callListener } from "../async/call-listener.ts";

type Listener = (frame: EventFrame) => void;

/** The listeners of `client.on`, by event name. */
export class EventListeners {
  readonly #listeners = new Map<EventName, Set<Listener>>();

  /** Returns a function that unsubscribes. */
  add<Name extends EventName>(name: Name, listener: (frame: EventFrame<Name>) => void): () => void {
    // A function of its own, so that the same listener can subscribe twice and unsubscribe once.
    const own: Listener = (frame) => listener(frame as EventFrame<Name>);
    const all = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, all.add(own));
    return () => void all.delete(own);
  }

  notify(frame: EventFrame): void {
    for (const listener of [...(this.#listeners.get(frame.method) ?? [])]) {
      callListener(() => listener(frame));
    }
  }
}
