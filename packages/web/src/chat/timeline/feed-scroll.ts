import { type ReactVirtualizer, useVirtualizer } from "@tanstack/react-virtual";
import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import { useChatContext } from "../context.ts";
import { estimateHeight, openingOf, PADDING_START_PX, type Start } from "./feed-opening.ts";
import { hasSameTop, type Row } from "./rows.ts";
import { type ScrollPosition, savedPosition, savePosition } from "./scroll-positions.ts";

export type FeedVirtualizer = ReactVirtualizer<HTMLDivElement, Element>;

/** Within this distance of the end, the list follows new messages. */
const NEAR_END_PX = 80;
/** Room for the toolbar of the latest answer, which lies below it, and for the line about typing. */
const PADDING_END_PX = 52;

interface FeedScrollOptions {
  box: RefObject<HTMLDivElement | null>;
  rows: Row[];
  /** Later messages exist that are not loaded. */
  hasNewer: boolean;
  start: RefObject<Start>;
  /** Null while the position is not known. */
  onAtEnd: (atEnd: boolean | null) => void;
}

interface FeedScroll {
  virtual: FeedVirtualizer;
  /** The message that stays in the middle until the person scrolls. */
  target: { id: string } | null;
  setTarget: (target: { id: string } | null) => void;
  toEnd: () => void;
}

/** Scrolls the feed: where it opens, what it follows, and which message stays in view. */
export function useFeedScroll(options: FeedScrollOptions): FeedScroll {
  const { box, rows, hasNewer, start, onAtEnd } = options;
  const { chat } = useChatContext();
  const save = useRef(() => {});
  // Registered before the virtualizer, whose own cleanup discards the position.
  useLayoutEffect(() => () => save.current(), []);

  const follows = useFollowing(!hasNewer);
  const [saved] = useState(() => savedPosition(chat.id));
  const [opening] = useState(() => openingOf(rows, start.current, saved));
  const [target, setTarget] = useState(opening.message);
  const virtual = useVirtualizer<HTMLDivElement, Element>({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: useCallback((index: number) => estimateHeight(rows[index]?.message), [rows]),
    getItemKey: useCallback((index: number) => rows[index]?.key ?? index, [rows]),
    initialMeasurementsCache: saved?.sizes ?? [],
    initialOffset: opening.offset,
    anchorTo: "end",
    followOnAppend: follows,
    scrollEndThreshold: NEAR_END_PX,
    overscan: 8,
    paddingStart: PADDING_START_PX,
    paddingEnd: PADDING_END_PX,
    directDomUpdates: true,
    // The toolbar of a long message is sticky, which a transform would prevent.
    directDomUpdatesMode: "position",
    onChange: (instance) => onAtEnd(instance.isAtEnd()),
  });
  useTextInPlace(virtual, rows);
  save.current = () => savePosition(chat.id, positionOf(virtual, hasNewer));
  const toEnd = useCallback(() => {
    setTarget(null);
    virtual.scrollToEnd();
  }, [virtual]);

  useLayoutEffect(() => {
    start.current = "saved";
    onAtEnd(opening.isEnd || null);
    if (opening.isEnd) virtual.scrollToEnd();
  }, [opening, virtual, start, onAtEnd]);
  useTargetInView(virtual, rows, target);
  useSentMessageInView(rows, toEnd);
  useStayingAtEnd(
    box,
    useCallback(() => virtual.scrollToEnd(), [virtual]),
  );
  return { virtual, target, setTarget, toEnd };
}

/** The position to save; null at the end of the conversation. */
function positionOf(virtual: FeedVirtualizer, hasNewer: boolean): ScrollPosition | null {
  const offset = virtual.scrollOffset ?? 0;
  const top = virtual.getVirtualItemForOffset(offset);
  if (!top || (virtual.isAtEnd() && !hasNewer)) return null;
  return { key: String(top.key), hiddenPx: offset - top.start, sizes: virtual.takeSnapshot() };
}

/** Whether the list follows appended messages: not while those between are still being loaded. */
function useFollowing(isComplete: boolean): boolean {
  const wasComplete = useRef(isComplete);
  useEffect(() => {
    wasComplete.current = isComplete;
  }, [isComplete]);
  return isComplete && wasComplete.current;
}

/**
 * Keeps the text of messages in place when older ones are loaded above. The row that was the first
 * then loses what it shows above its text, such as the day and the sender.
 */
function useTextInPlace(virtual: FeedVirtualizer, rows: readonly Row[]): void {
  const previousFirst = useRef(rows[0]);
  const changedAtTop = useRef(new Set<string>());
  const before = previousFirst.current;
  if (before && before.key !== rows[0]?.key) {
    const now = rows.find(({ key }) => key === before.key);
    if (now && !hasSameTop(before, now)) changedAtTop.current.add(now.key);
  }
  previousFirst.current = rows[0];

  useLayoutEffect(() => {
    virtual.shouldAdjustScrollPositionOnItemSizeChange = (row, _, list) => {
      const viewStart = list.scrollOffset ?? 0;
      const viewEnd = viewStart + (list.scrollRect?.height ?? 0);
      const isChangedAtTop = changedAtTop.current.delete(String(row.key));
      if (!list.itemSizeCache.has(row.key)) {
        return row.start < viewStart || isAboveMeasured(row.index, viewEnd, list);
      }
      if (isChangedAtTop) return row.start < viewEnd;
      // For every other row, the default of the virtualizer.
      return row.end <= viewStart && list.scrollDirection !== "backward";
    };
  }, [virtual]);
}

/** Whether a row below this one is in view and measured: it is in its place already. */
function isAboveMeasured(
  index: number,
  viewEnd: number,
  {
    measurementsCache,
    itemSizeCache,
  }: Pick<FeedVirtualizer, "measurementsCache" | "itemSizeCache">,
): boolean {
  for (let below = index + 1; below < measurementsCache.length; below++) {
    const row = measurementsCache[below];
    if (!row || row.start >= viewEnd) return false;
    if (itemSizeCache.has(row.key)) return true;
  }
  return false;
}

/** Keeps a message in the middle, or the beginning of a long one in view. Its index changes when older messages are loaded above it. */
function useTargetInView(
  virtual: FeedVirtualizer,
  rows: readonly Row[],
  target: { id: string } | null,
): void {
  const index = target ? rows.findIndex(({ message }) => message.id === target.id) : -1;
  const height = estimateHeight(rows[index]?.message);
  const isTall = height > (virtual.scrollRect?.height ?? 0);
  useLayoutEffect(() => {
    if (target && index >= 0) virtual.scrollToIndex(index, { align: isTall ? "start" : "center" });
  }, [target, index, isTall, virtual]);
}

/** Scrolls to the end when the person sends a message. */
function useSentMessageInView(rows: readonly Row[], toEnd: () => void): void {
  const last = rows.at(-1);
  const sending = last?.message.delivery === "sending" ? last.key : undefined;
  const handled = useRef(sending);
  useLayoutEffect(() => {
    if (sending === undefined || sending === handled.current) return;
    handled.current = sending;
    toEnd();
  }, [sending, toEnd]);
}

/** Keeps the end in view when the list becomes lower, as when the keyboard of a phone opens. */
function useStayingAtEnd(box: RefObject<HTMLElement | null>, scrollToEnd: () => void): void {
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    let height = element.clientHeight;
    const observer = new ResizeObserver(() => {
      if (element.clientHeight === height) return;
      const below = element.scrollHeight - element.scrollTop - height;
      height = element.clientHeight;
      if (below <= NEAR_END_PX) scrollToEnd();
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [box, scrollToEnd]);
}
