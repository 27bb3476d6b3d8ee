import type { LocalMessage, MessageWindow } from "@parley/client";
import {
  type KeyboardEvent,
  type Ref,
  type RefObject,
  useCallback,
  useEffect,
  useImperativeHandle,
  useMemo,
  useRef,
} from "react";
import { useSelf } from "../../lib/me.ts";
import { dayLabel } from "../../lib/time.ts";
import { useActiveMessage } from "./active-message.ts";
import { FloatingDate } from "./FloatingDate.tsx";
import type { Start } from "./feed-opening.ts";
import { type FeedVirtualizer, useFeedScroll } from "./feed-scroll.ts";
import { MessageRow } from "./MessageRow.tsx";
import {
  earlierAnswers,
  isFirstUnreadOlder,
  outdatedAnswers,
  type Row,
  rowsOf,
  strangersFirstMessages,
} from "./rows.ts";

export interface FeedHandle {
  toEnd: () => void;
  /** Brings a message into the middle; false if it is not loaded. */
  show: (messageId: string) => boolean;
}

interface FeedProps {
  ref: Ref<FeedHandle>;
  window: MessageWindow;
  /** The `seq` up to which the person had read; null without unread messages. */
  readUpTo: number | null;
  start: RefObject<Start>;
  /** Null while the position is not known. */
  onAtEnd: (atEnd: boolean | null) => void;
  onMore: (direction: "older" | "newer") => void;
  busy: boolean;
}

/** More messages are loaded when fewer rows than this are left outside of the view. */
const LOAD_AHEAD_ROWS = 12;
/** Height of the day above a message. */
const DAY_HEIGHT_PX = 48;

/** The list of messages. Only the visible ones are in the page. */
export function Feed({ ref, window, readUpTo, start, onAtEnd, onMore, busy }: FeedProps) {
  const me = useSelf();
  const { items, hasOlder, hasNewer } = window;
  const box = useRef<HTMLDivElement>(null);
  const hasLine = readUpTo !== null && !isFirstUnreadOlder(window, readUpTo);
  const rows = useRows(window, me.username, hasLine ? readUpTo : null);
  const latestRows = useRef(rows);
  latestRows.current = rows;
  const scroll = useFeedScroll({ box, rows, hasNewer, start, onAtEnd });
  const { virtual, target, setTarget, toEnd } = scroll;
  useImperativeHandle(
    ref,
    () => ({
      toEnd,
      show(id) {
        const isLoaded = latestRows.current.some(({ message }) => message.id === id);
        if (isLoaded) setTarget({ id });
        return isLoaded;
      },
    }),
    [toEnd, setTarget],
  );

  const inPage = virtual.getVirtualItems();
  const firstShown = inPage[0]?.index ?? rows.length;
  const lastShown = inPage.at(-1)?.index ?? -1;
  useEffect(() => {
    if (hasOlder && firstShown < LOAD_AHEAD_ROWS) onMore("older");
    if (hasNewer && lastShown >= rows.length - LOAD_AHEAD_ROWS) onMore("newer");
  }, [hasOlder, hasNewer, firstShown, lastShown, rows.length, onMore]);

  const outdated = useMemo(() => outdatedAnswers(items), [items]);
  const earlier = useMemo(() => earlierAnswers(items), [items]);
  const strangers = useMemo(() => strangersFirstMessages(items, me.username), [items, me.username]);
  useActiveMessage(box);
  const visibleDay = useVisibleDay(virtual, latestRows);
  const lastOwn = useMemo(() => lastSent(items, me.username), [items, me.username]);
  const clearTarget = () => setTarget(null);
  return (
    <>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: it only notices that the person scrolls */}
      <div
        ref={box}
        onWheel={clearTarget}
        onPointerDown={clearTarget}
        onKeyDown={clearTarget}
        className="@container h-full overflow-x-hidden overflow-y-auto overscroll-contain [overflow-anchor:none]"
      >
        {/* A short conversation stands at the bottom, where the next message appears. */}
        <div className="flex min-h-full flex-col justify-end">
          <div
            ref={virtual.containerRef}
            role="feed"
            onKeyDown={(event) => moveFocus(event, virtual, box.current)}
            aria-label="Messages"
            aria-busy={busy}
            className="relative w-full"
          >
            {inPage.map(({ key, index }) => {
              const row = rows[index];
              if (!row) return null;
              return (
                <div
                  key={key}
                  data-index={index}
                  ref={virtual.measureElement}
                  // The toolbar of a message overlaps the row below.
                  className="absolute top-0 left-0 w-full has-[article[data-active]]:z-10"
                >
                  <MessageRow
                    {...row}
                    // The name is not shown on a folded answer.
                    first={row.first || earlier.has(rows[index - 1]?.message.id ?? "")}
                    tabbable={index === lastShown}
                    flash={target?.id === row.message.id}
                    latest={index === rows.length - 1 && !hasNewer}
                    isLastOwn={row.message === lastOwn}
                    outdated={outdated.has(row.message.id)}
                    earlier={earlier.get(row.message.id)}
                    ofStranger={strangers.has(row.message.id)}
                  />
                </div>
              );
            })}
          </div>
        </div>
      </div>
      <FloatingDate box={box} visibleDay={visibleDay} />
    </>
  );
}

/** The rows of the messages. Reuses the rows of messages that have not changed. */
function useRows(window: MessageWindow, me: string, readUpTo: number | null): Row[] {
  const built = useRef<{
    rows: Row[];
    window: MessageWindow;
    me: string;
    readUpTo: number | null;
  }>(null);
  return useMemo(() => {
    const before = built.current;
    const isReusable =
      before?.me === me && before.readUpTo === readUpTo && before.window.changes === window.changes;
    const rows = rowsOf(window, me, readUpTo, isReusable ? before.rows : []);
    built.current = { rows, window, me, readUpTo };
    return rows;
  }, [window, me, readUpTo]);
}

/** A function that returns the day of the first visible message, unless its separator is visible. */
function useVisibleDay(virtual: FeedVirtualizer, rows: RefObject<Row[]>): () => string | null {
  return useCallback(() => {
    const offset = virtual.scrollOffset ?? 0;
    const top = virtual.getVirtualItemForOffset(offset);
    const row = rows.current[top?.index ?? -1];
    if (!top || !row || (row.day !== null && offset - top.start < DAY_HEIGHT_PX)) return null;
    return dayLabel(row.message.created_at);
  }, [virtual, rows]);
}

/** Arrow keys move the focus from message to message. */
function moveFocus(event: KeyboardEvent, virtual: FeedVirtualizer, box: HTMLElement | null): void {
  const from = rowIndex(event.target);
  if (from === null || (event.key !== "ArrowUp" && event.key !== "ArrowDown")) return;
  event.preventDefault();
  const next = from + (event.key === "ArrowUp" ? -1 : 1);
  const to = Math.min(Math.max(next, 0), virtual.options.count - 1);
  virtual.scrollToIndex(to);
  const row = () => rowElement(box, to);
  // A row outside of the page is rendered with the next frame.
  if (row()) row()?.focus();
  else requestAnimationFrame(() => row()?.focus());
}

const rowElement = (box: HTMLElement | null, index: number) =>
  box?.querySelector<HTMLElement>(`[data-index="${index}"] article`) ?? null;

function rowIndex(target: EventTarget): number | null {
  if (!(target instanceof HTMLElement) || target.tagName !== "ARTICLE") return null;
  const index = target.closest<HTMLElement>("[data-index]")?.dataset.index;
  return index === undefined ? null : Number(index);
}

const lastSent = (items: readonly LocalMessage[], me: string) =>
  items.findLast(({ sender, delivery }) => sender.username === me && delivery === "sent");
