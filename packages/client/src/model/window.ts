import type { ConversationChange, EventFrame, Message } from "@parley/protocol";
import type { LocalMessage } from "../types.ts";
import { asSent, changed, changedId, later } from "./message.ts";
import type { ChatState, Place, Window } from "./state.ts";

export interface HistoryPage {
  items: readonly Message[];
  has_more: boolean;
  /** A server of an earlier version sends none. */
  changes?: readonly ConversationChange[];
}

/** The latest page, as the server had it at `seq` or later. */
export function openedWindow(page: HistoryPage, gone: ReadonlySet<string>, seq: number): Window {
  const window = { items: [], changes: [], floor: floorOf(page), ceiling: null, seq };
  return withPage(window, page, gone);
}

/** A page from the middle, which does not say on which side of it there is more. */
export function windowAround(page: HistoryPage, gone: ReadonlySet<string>, seq: number): Window {
  const [floor, ceiling] = [placeAt(page.items[0]), placeAt(page.items.at(-1))];
  return withPage({ items: [], changes: [], floor, ceiling, seq }, page, gone);
}

const withPage = (window: Window, { items, changes }: HistoryPage, gone: ReadonlySet<string>) =>
  withChanges(withMessages(window, items, gone), changes);

/** The window with the page before it; back to `seq`, since when changes of these messages were not heard. */
export function withOlder(
  window: Window,
  page: HistoryPage,
  gone: ReadonlySet<string>,
  seq: number,
): Window {
  const floor = floorOf(page);
  return withPage({ ...window, floor, seq: Math.min(window.seq, seq) }, page, gone);
}

/** The same with the page after it. */
export function withNewer(
  window: Window,
  page: HistoryPage,
  gone: ReadonlySet<string>,
  seq: number,
): Window {
  const ceiling = page.has_more ? placeAt(page.items.at(-1)) : null;
  return withPage({ ...window, ceiling, seq: Math.min(window.seq, seq) }, page, gone);
}

const floorOf = ({ items, has_more }: HistoryPage): Place | null =>
  has_more ? placeAt(items[0]) : null;

const placeAt = (message: Message | undefined): Place | null =>
  message ? { id: message.id, seq: message.seq } : null;

/** What was loaded further back becomes part of the window as soon as nothing between them is missing. */
export function joined(state: ChatState): ChatState {
  const { window, aside } = state;
  if (!window || !aside) return state;
  const from = window.floor?.seq ?? 0;
  if (aside.ceiling && aside.ceiling.seq < from) return state;
  const older = aside.items.filter(({ seq }) => seq < from);
  const whole = {
    items: [...older, ...window.items],
    changes: window.changes,
    floor: (aside.floor?.seq ?? 0) < from ? aside.floor : window.floor,
    ceiling: null,
    seq: Math.min(window.seq, aside.seq),
  };
  return { ...state, aside: null, window: withChanges(whole, aside.changes) };
}

/** The window without all but its latest messages. */
export function latestOf(window: Window, most: number): Window {
  const items = window.items.slice(-most);
  if (items.length === window.items.length) return window;
  const floor = placeAt(items[0]);
  const changes = window.changes.filter(({ seq }) => seq > (floor?.seq ?? 0));
  return { ...window, items, changes, floor };
}

/** The conversation with both of its windows changed. */
export function onWindows(state: ChatState, change: (window: Window) => Window): ChatState {
  const window = state.window && change(state.window);
  const aside = state.aside && change(state.aside);
  return window === state.window && aside === state.aside ? state : { ...state, window, aside };
}

/** The window with messages fetched: new ones in their places, known ones in their later version. */
export function withMessages(
  window: Window,
  fetched: readonly Message[],
  gone: ReadonlySet<string>,
): Window {
  const items = [...window.items];
  let isSame = true;
  for (const message of fetched) {
    if (gone.has(message.id) || !isWithin(window, message.seq)) continue;
    const place = placeOf(items, message.seq);
    const known = items[place];
    const next = known?.id === message.id ? later(known, message) : asSent(message);
    isSame &&= next === known;
    items.splice(place, known?.id === message.id ? 1 : 0, next);
  }
  return isSame ? window : { ...window, items };
}

/** The window with changes of the group that were fetched or heard; they stay as they are for good. */
export function withChanges(window: Window, fetched: readonly ConversationChange[] = []): Window {
  const known = new Set(window.changes.map(({ seq }) => seq));
  const news = fetched.filter(({ seq }) => !known.has(seq) && isWithin(window, seq));
  if (news.length === 0) return window;
  const changes = [...window.changes, ...news].toSorted((one, other) => one.seq - other.seq);
  return { ...window, changes };
}

const isWithin = ({ floor, ceiling }: Window, seq: number): boolean =>
  seq >= (floor?.seq ?? 0) && seq <= (ceiling?.seq ?? Number.POSITIVE_INFINITY);

/** Where a message of that place stands, or would stand. */
function placeOf(items: readonly LocalMessage[], seq: number): number {
  let low = 0;
  let high = items.length;
  // Most come at the end.
  if ((items[high - 1]?.seq ?? 0) < seq) return high;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((items[middle]?.seq ?? 0) < seq) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function withoutMessages(window: Window, ids: ReadonlySet<string>): Window {
  if (!window.items.some(({ id }) => ids.has(id))) return window;
  return { ...window, items: window.items.filter(({ id }) => !ids.has(id)) };
}

export function mapMessage(
  window: Window,
  id: string,
  change: (message: LocalMessage) => LocalMessage,
): Window {
  const place = window.items.findLastIndex((message) => message.id === id);
  const message = window.items[place];
  const next = message && change(message);
  if (!next || next === message) return window;
  return { ...window, items: window.items.with(place, next) };
}

/** The window after a counted event; as it was when something before the event is missing. */
export function windowAfter(
  window: Window,
  frame: EventFrame,
  gone: ReadonlySet<string>,
  me: string | undefined,
): Window {
  if (frame.at?.seq !== window.seq + 1) return window;
  return { ...withEvent(window, frame, gone, me), seq: frame.at.seq };
}

function withEvent(
  window: Window,
  frame: EventFrame,
  gone: ReadonlySet<string>,
  me: string | undefined,
): Window {
  switch (frame.method) {
    case "events.messageNew":
      return withMessages(window, [frame.params], gone);
    case "events.messageEdited":
    case "events.messageComplete":
    case "events.reactionAdded":
    case "events.reactionRemoved":
      return mapMessage(window, changedId(frame), (message) => changed(message, frame, me));
    case "events.messageDeleted":
      return withoutMessages(window, new Set(frame.params.ids));
    case "events.conversationUpdated":
      return withChanges(window, frame.params.changes);
    default:
      return window;
  }
}
