import { onHide } from "../connection/page-events.ts";
import type { Cached, State } from "../model/state.ts";
import type { Store } from "../model/store.ts";
import { latestOf } from "../model/window.ts";
import type { KeyValueStorage } from "../types.ts";

const KEY = "parley:state";
/** Changes with the shape of what is kept. */
const VERSION = 3;
/** A change is kept after so long, together with those that follow it meanwhile. */
const DELAY_MS = 2000;
const CHATS = 30;
const WINDOWS = 5;
const MESSAGES = 40;
/** Storages of browsers are small, and shared with what has not been sent yet. */
const MOST_CHARACTERS = 500_000;

export interface Cache {
  /** Brings back what whoever has this token last saw. */
  restore(token: string): void;
  /** Keeps at once what would be kept soon. */
  save(): void;
  clear(): void;
}

/** Keeps the latest of what was shown, so that the next start has it before there is a connection. */
export function cache(
  store: Store,
  storage: KeyValueStorage | undefined,
  token: () => string | null,
): Cache {
  let timer: ReturnType<typeof setTimeout> | undefined;

  function save(): void {
    if (timer === undefined) return;
    clearTimeout(timer);
    timer = undefined;
    const owner = token();
    const kept = owner !== null && keptOf(store.state);
    if (!kept) return;
    try {
      storage?.setItem(KEY, `{"version":${VERSION},"owner":"${fingerprint(owner)}",${kept}}`);
    } catch {
      storage?.removeItem(KEY);
    }
  }

  store.onChange((state, before) => {
    const isSame = state.chats === before.chats && state.agents === before.agents;
    if (!storage || isSame || state.me === null) return;
    timer ??= unheld(setTimeout(save, DELAY_MS));
  });
  if (storage) onHide(save);

  return {
    restore(owner) {
      try {
        const kept = JSON.parse(storage?.getItem(KEY) ?? "null");
        if (kept?.version !== VERSION || kept.owner !== fingerprint(owner)) return;
        store.dispatch({ type: "restored", cached: kept as Cached });
      } catch {
        storage?.removeItem(KEY);
      }
    },
    save,
    clear() {
      clearTimeout(timer);
      timer = undefined;
      storage?.removeItem(KEY);
    },
  };
}

/** A process is not kept alive to remember something. */
function unheld(timer: ReturnType<typeof setTimeout>): ReturnType<typeof setTimeout> {
  if (typeof timer === "object") (timer as { unref?(): void }).unref?.();
  return timer;
}

/** The first conversations of the list, and the latest messages of some: as much as there is room for. */
function keptOf({ me, chats, order, ...state }: State): string | null {
  if (!me) return null;
  let room = MOST_CHARACTERS;
  let windows = WINDOWS;
  const parts: string[] = [];
  for (const id of order.slice(0, CHATS)) {
    const { chat, window } = chats[id] ?? {};
    if (!chat) continue;
    const latest = windows > 0 && window ? latestOf(window, MESSAGES) : null;
    const whole = JSON.stringify({ chat, window: latest });
    const part = whole.length <= room ? whole : JSON.stringify({ chat, window: null });
    if (part.length > room) break;
    if (latest && part === whole) windows--;
    room -= part.length;
    parts.push(part);
  }
  const { historyId, accountsSeq, agents, reading } = state;
  const own = state.own.seq;
  const rest = JSON.stringify({ historyId, accountsSeq, own, me, agents, reading }).slice(1, -1);
  return `${rest},"chats":[${parts}]`;
}

/** Tells tokens apart without giving one away: 52 bits of a hash. */
function fingerprint(token: string): string {
  let [one, other] = [0xdeadbeef, 0x41c6ce57];
  for (let place = 0; place < token.length; place++) {
    const code = token.charCodeAt(place);
    one = Math.imul(one ^ code, 2_654_435_761);
    other = Math.imul(other ^ code, 1_597_334_677);
  }
  one =
    Math.imul(one ^ (one >>> 16), 2_246_822_507) ^ Math.imul(other ^ (other >>> 13), 3_266_489_909);
  return (2 ** 20 * (one >>> 0) + ((other >>> 12) & 0xfffff)).toString(36);
}
