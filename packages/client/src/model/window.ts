import type { ConversationChange, Message } from "@parley/protocol";
import type { LocalMessage } from "../types.ts";
import type { CountedFrame } from "./event-kinds.ts";
import { asSent, changedMessageId, messageAfter, newerMessage } from "./message.ts";
import type { ChatState, Place, Window } from "./state.ts";

export interface MessagePage {
  items: readonly Message[];
  has_more: boolean;
  /** Older servers send none. */
  changes?: readonly ConversationChange[];
}

/** What adding a page needs besides the page. */
interface PageContext {
  tombstones: ReadonlySet<string>;
  /** The conversation's counter when the page was requested: the page includes all changes up to it. */
  seq: number;
}

/** A window of the latest page. */
export function createWindow(page: MessagePage, { tombstones, seq }: PageContext): Window {
  const window = { items: [], changes: [], floor: floorOf(page), ceiling: null, seq };
  return addPage(window, page, tombstones);
}

/** A window of a page around a message. The page does not tell on which side there are more. */
export function createAside(page: MessagePage, { tombstones, seq }: PageContext): Window {
  const [floor, ceiling] = [placeAt(page.items[0]), placeAt(page.items.at(-1))];
  return addPage({ items: [], changes: [], floor, ceiling, seq }, page, tombstones);
}

const addPage = (window: Window, page: MessagePage, tombstones: ReadonlySet<string>): Window =>
  addChanges(addMessages(window, page.items, tombstones), page.changes);

/**
 * Extends the window by the page before it. The window is then only current up to `seq`, because
 * later changes of the added messages may have been missed.
 */
export function extendOlder(window: Window, page: MessagePage, context: PageContext): Window {
  const floor = floorOf(page);
  const seq = Math.min(window.seq, context.seq);
  return addPage({ ...window, floor, seq }, page, context.tombstones);
}

/** Extends the window by the page after it. */
export function extendNewer(window: Window, page: MessagePage, context: PageContext): Window {
  const ceiling = page.has_more ? placeAt(page.items.at(-1)) : null;
  const seq = Math.min(window.seq, context.seq);
  return addPage({ ...window, ceiling, seq }, page, context.tombstones);
}

const floorOf = ({ items, has_more }: MessagePage): Place | null =>
  has_more ? placeAt(items[0]) : null;

const placeAt = (message: Message | undefined): Place | null =>
  message ? { id: message.id, seq: message.seq } : null;

/** Merges `aside` into the window once there is no gap between them. */
export function joinAside(state: ChatState): ChatState {
  const { window, aside } = state;
  if (!window || !aside) return state;
  const from = window.floor?.seq ?? 0;
  if (aside.ceiling && aside.ceiling.seq < from) return state;
  const older = aside.items.filter(({ seq }) => seq < from);
  const joined = {
    items: [...older, ...window.items],
    changes: window.changes,
    floor: (aside.floor?.seq ?? 0) < from ? aside.floor : window.floor,
    ceiling: null,
    seq: Math.min(window.seq, aside.seq),
  };
  return { ...state, aside: null, window: addChanges(joined, aside.changes) };
}

/** Drops all but the latest messages of the window. */
export function trimWindow(window: Window, maxMessages: number): Window {
  const items = window.items.slice(-maxMessages);
  if (items.length === window.items.length) return window;
  const floor = placeAt(items[0]);
  const changes = window.changes.filter(({ seq }) => seq > (floor?.seq ?? 0));
  return { ...window, items, changes, floor };
}

/** Applies a change to both windows of a conversation. */
export function updateWindows(state: ChatState, change: (window: Window) => Window): ChatState {
  const window = state.window && change(state.window);
  const aside = state.aside && change(state.aside);
  return window === state.window && aside === state.aside ? state : { ...state, window, aside };
}

/** Adds messages that lie in the window's range; of a known one the newer version is kept. */
export function addMessages(
  window: Window,
  fetched: readonly Message[],
  tombstones: ReadonlySet<string>,
): Window {
  const items = [...window.items];
  let isSame = true;
  for (const message of fetched) {
    if (tombstones.has(message.id) || !isInRange(window, message.seq)) continue;
    const index = indexOf(items, message.seq);
    const known = items[index];
    const next = known?.id === message.id ? newerMessage(known, message) : asSent(message);
    isSame &&= next === known;
    items.splice(index, known?.id === message.id ? 1 : 0, next);
  }
  return isSame ? window : { ...window, items };
}

/** Adds changes of the group that lie in the window's range. Known ones stay: they are immutable. */
export function addChanges(window: Window, fetched: readonly ConversationChange[] = []): Window {
  const known = new Set(window.changes.map(({ seq }) => seq));
  const added = fetched.filter(({ seq }) => !known.has(seq) && isInRange(window, seq));
  if (added.length === 0) return window;
  const changes = [...window.changes, ...added].toSorted((one, other) => one.seq - other.seq);
  return { ...window, changes };
}

const isInRange = ({ floor, ceiling }: Window, seq: number): boolean =>
  seq >= (floor?.seq ?? 0) && seq <= (ceiling?.seq ?? Number.POSITIVE_INFINITY);

/** The index of the message with this `seq`, or where it has to be inserted. */
function indexOf(items: readonly LocalMessage[], seq: number): number {
  let low = 0;
  let high = items.length;
  // Most messages are appended.
  if ((items[high - 1]?.seq ?? 0) < seq) return high;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((items[middle]?.seq ?? 0) < seq) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function removeMessages(window: Window, ids: ReadonlySet<string>): Window {
  if (!window.items.some(({ id }) => ids.has(id))) return window;
  return { ...window, items: window.items.filter(({ id }) => !ids.has(id)) };
}

export function mapMessage(
  window: Window,
  id: string,
  change: (message: LocalMessage) => LocalMessage,
): Window {
  const index = window.items.findLastIndex((message) => message.id === id);
  const message = window.items[index];
  const next = message && change(message);
  if (!next || next === message) return window;
  return { ...window, items: window.items.with(index, next) };
}

/** The window after a counted event; unchanged unless the event is the next change. */
export function windowAfter(
  window: Window,
  frame: CountedFrame,
  tombstones: ReadonlySet<string>,
  me: string | undefined,
): Window {
  if (frame.at?.seq !== window.seq + 1) return window;
  return { ...applyEvent(window, frame, tombstones, me), seq: frame.at.seq };
}

function applyEvent(
  window: Window,
  frame: CountedFrame,
  tombstones: ReadonlySet<string>,
  me: string | undefined,
): Window {
  switch (frame.method) {
    case "events.messageNew":
      return addMessages(window, [frame.params], tombstones);
    case "events.messageEdited":
    case "events.messageComplete":
    case "events.reactionAdded":
    case "events.reactionRemoved":
    case "events.toolCallUpdated":
      return mapMessage(window, changedMessageId(frame), (message) =>
        messageAfter(message, frame, me),
      );
    case "events.messageDeleted":
      return removeMessages(window, new Set(frame.params.ids));
    case "events.conversationUpdated":
      return addChanges(window, frame.params.changes);
    default:
      // An event that this version does not know: only the counter changes.
      frame satisfies never;
      return window;
  }
}
