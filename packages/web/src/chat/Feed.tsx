import type { LocalMessage, MessageWindow } from "@parley/client";
import { useVirtualizer } from "@tanstack/react-virtual";
import {
  type KeyboardEvent,
  type Ref,
  type RefObject,
  useCallback,
  useEffect,
  useImperativeHandle,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { useSelf } from "../lib/me.ts";
import { dayLabel } from "../lib/time.ts";
import { useActiveMessage } from "./active-message.ts";
import { useChatContext } from "./context.ts";
import { FloatingDate } from "./FloatingDate.tsx";
import { MessageRow } from "./MessageRow.tsx";
import { outdatedAnswers, type Row, rowsOf } from "./rows.ts";
import { type Place, savedPosition, savePosition } from "./scroll-positions.ts";

/** Where the list begins: where the person was, at the latest message, or at a certain one. */
export type Start = "left" | "latest" | { message: string };

export interface FeedHandle {
  toEnd: () => void;
  /** Brings a message into the middle, if it is among these; true if it is. */
  show: (messageId: string) => boolean;
}

interface FeedProps {
  ref: Ref<FeedHandle>;
  window: MessageWindow;
  /** Up to where the person had read. */
  line: number | null;
  start: RefObject<Start>;
  /** Null while that is not certain. */
  onAtEnd: (atEnd: boolean | null) => void;
  onMore: (direction: "older" | "newer") => void;
  busy: boolean;
}

/** Within so many pixels of the end, the list follows what comes. */
const NEAR_END = 80;
/** More messages are asked for while so many are still out of sight. */
const AHEAD = 12;
const PADDING = 24;
/** How much of a row the day above its message takes. */
const DAY_HEIGHT = 48;
/** The actions of the latest answer have their place below it. */
const PADDING_END = 36;

/** The messages, of which only those in sight are in the page. */
export function Feed({ ref, window, line, start, onAtEnd, onMore, busy }: FeedProps) {
  const { chat } = useChatContext();
  const me = useSelf();
  const { items, hasOlder, hasNewer } = window;
  const box = useRef<HTMLDivElement>(null);
  const leave = useRef(() => {});
  // Before the list of the library, which forgets where it was when it goes.
  useLayoutEffect(() => () => leave.current(), []);

  const rows = useRows(window, me.username, line);
  const latest = useRef(rows);
  latest.current = rows;
  const follows = useFollowing(!hasNewer);
  const [left] = useState(() => savedPosition(chat.id));
  const [opening] = useState(() => openingOf(rows, start.current, left));
  /** The message that is to stay in the middle until the person scrolls. */
  const [aim, setAim] = useState(opening.message);
  const aimed = aim ? rows.findIndex(({ message }) => message.id === aim.id) : -1;

  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: useCallback((index: number) => estimate(rows[index]?.message), [rows]),
    getItemKey: useCallback((index: number) => rows[index]?.key ?? index, [rows]),
    initialMeasurementsCache: left?.sizes ?? [],
    initialOffset: opening.offset,
    anchorTo: "end",
    followOnAppend: follows,
    scrollEndThreshold: NEAR_END,
    overscan: 8,
    paddingStart: PADDING,
    paddingEnd: PADDING_END,
    directDomUpdates: true,
    onChange: (instance) => onAtEnd(instance.isAtEnd()),
  });

  leave.current = () => {
    const offset = virtual.scrollOffset ?? 0;
    const top = virtual.getVirtualItemForOffset(offset);
    const atEnd = virtual.isAtEnd() && !hasNewer;
    if (!top || atEnd) return savePosition(chat.id, null);
    const sizes = virtual.takeSnapshot();
    savePosition(chat.id, { key: String(top.key), hidden: offset - top.start, sizes });
  };

  useLayoutEffect(() => {
    start.current = "left";
    onAtEnd(opening.isEnd || null);
    if (opening.isEnd) virtual.scrollToEnd();
  }, [opening, virtual, start, onAtEnd]);

  // The library goes to a place in the list, which moves when older messages come in above.
  useLayoutEffect(() => {
    if (aim && aimed >= 0) virtual.scrollToIndex(aimed, { align: "center" });
  }, [aim, aimed, virtual]);

  const unsent = rows.at(-1)?.message.delivery === "sending" ? rows.at(-1)?.key : undefined;
  const handled = useRef(unsent);
  // What one has just written is in sight, wherever one was reading before.
  useLayoutEffect(() => {
    if (unsent === undefined || unsent === handled.current) return;
    handled.current = unsent;
    setAim(null);
    virtual.scrollToEnd();
  }, [unsent, virtual]);

  useStayingAtEnd(
    box,
    useCallback(() => virtual.scrollToEnd(), [virtual]),
  );

  useImperativeHandle(
    ref,
    () => ({
      toEnd() {
        setAim(null);
        virtual.scrollToEnd();
      },
      show(id) {
        const isHere = latest.current.some(({ message }) => message.id === id);
        if (isHere) setAim({ id });
        return isHere;
      },
    }),
    [virtual],
  );

  const inPage = virtual.getVirtualItems();
  const firstShown = inPage[0]?.index ?? rows.length;
  const lastShown = inPage.at(-1)?.index ?? -1;
  useEffect(() => {
    if (hasOlder && firstShown < AHEAD) onMore("older");
    if (hasNewer && lastShown >= rows.length - AHEAD) onMore("newer");
  }, [hasOlder, hasNewer, firstShown, lastShown, rows.length, onMore]);

  const pressed = (event: KeyboardEvent<HTMLDivElement>) => {
    const from = rowIndex(event.target);
    if (from === null || (event.key !== "ArrowUp" && event.key !== "ArrowDown")) return;
    event.preventDefault();
    const to = Math.min(Math.max(from + (event.key === "ArrowUp" ? -1 : 1), 0), rows.length - 1);
    virtual.scrollToIndex(to);
    const row = () => rowElement(box.current, to);
    // One that is out of the page comes into it with the next frame.
    if (row()) row()?.focus();
    else requestAnimationFrame(() => row()?.focus());
  };

  const outdated = useMemo(() => outdatedAnswers(items), [items]);
  useActiveMessage(box);
  const dayInSight = useCallback(() => {
    const offset = virtual.scrollOffset ?? 0;
    const top = virtual.getVirtualItemForOffset(offset);
    const row = latest.current[top?.index ?? -1];
    // The day that begins with this row is written above it, and still in sight.
    if (!top || !row || (row.day && offset - top.start < DAY_HEIGHT)) return null;
    return dayLabel(row.message.created_at);
  }, [virtual]);
  const lastOwn = useMemo(() => lastSent(items, me.username), [items, me.username]);
  return (
    <>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: it only takes note that somebody scrolls */}
      <div
        ref={box}
        onWheel={() => setAim(null)}
        onPointerDown={() => setAim(null)}
        onKeyDown={() => setAim(null)}
        className="@container h-full overflow-x-hidden overflow-y-auto overscroll-contain [overflow-anchor:none]"
      >
        {/* A short conversation stands at the foot of the page, where the next message will be. */}
        <div className="flex min-h-full flex-col justify-end">
          <div
            ref={virtual.containerRef}
            role="feed"
            onKeyDown={pressed}
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
                  // The toolbar of a message reaches into the row below it.
                  className="absolute top-0 left-0 w-full has-[article[data-active]]:z-10"
                >
                  <MessageRow
                    {...row}
                    tabbable={index === lastShown}
                    flash={aim?.id === row.message.id}
                    latest={index === rows.length - 1 && !hasNewer}
                    isLastOwn={row.message === lastOwn}
                    outdated={outdated.has(row.message.id)}
                  />
                </div>
              );
            })}
          </div>
        </div>
      </div>
      <FloatingDate box={box} dayInSight={dayInSight} />
    </>
  );
}

/** The rows of the messages; those of messages that have not changed are not made again. */
function useRows(window: MessageWindow, me: string, line: number | null): Row[] {
  const made = useRef<{ rows: Row[]; window: MessageWindow; me: string; line: number | null }>(
    null,
  );
  return useMemo(() => {
    const before = made.current;
    const fits =
      before?.me === me && before.line === line && before.window.changes === window.changes;
    const rows = rowsOf(window, me, line, fits ? before.rows : []);
    made.current = { rows, window, me, line };
    return rows;
  }, [window, me, line]);
}

/** Whether the list goes along with what is appended; not with what closes a gap behind it. */
function useFollowing(isWhole: boolean): boolean {
  const wasWhole = useRef(isWhole);
  useEffect(() => {
    wasWhole.current = isWhole;
  }, [isWhole]);
  return isWhole && wasWhole.current;
}

/** Whoever is at the end stays there when there is less room, as when a phone's keyboard comes up. */
function useStayingAtEnd(box: RefObject<HTMLElement | null>, toEnd: () => void): void {
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    let height = element.clientHeight;
    const observer = new ResizeObserver(() => {
      if (element.clientHeight === height) return;
      const below = element.scrollHeight - element.scrollTop - height;
      height = element.clientHeight;
      if (below <= NEAR_END) toEnd();
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [box, toEnd]);
}

interface Opening {
  /** Near enough for the first rows to be the right ones. */
  offset: number;
  isEnd: boolean;
  message: { id: string } | null;
}

/** At a certain message, where the person was, at the first one not read, or at the end. */
function openingOf(rows: readonly Row[], start: Start, left: Place | undefined): Opening {
  const sizes = new Map(left?.sizes.map(({ key, size }) => [key, size]));
  const sizeOf = ({ key, message }: Row) => sizes.get(key) ?? estimate(message);
  const at = (index: number, hidden = 0): Opening => ({
    offset: rows.slice(0, index).reduce((sum, row) => sum + sizeOf(row), PADDING) + hidden,
    isEnd: false,
    message: null,
  });
  if (typeof start === "object") {
    const index = rows.findIndex(({ message }) => message.id === start.message);
    if (index >= 0) return { ...at(index), message: { id: start.message } };
  }
  const before = rows.findIndex(({ key }) => key === left?.key);
  if (start === "left" && before >= 0) return at(before, left?.hidden);
  const line = rows.findIndex(({ fresh }) => fresh);
  if (start === "left" && line >= 0) return at(line);
  return { ...at(rows.length), isEnd: true };
}

const estimate = (message: LocalMessage | undefined) =>
  48 + Math.ceil((message?.content.length ?? 0) / 75) * 23;

const rowElement = (box: HTMLElement | null, index: number) =>
  box?.querySelector<HTMLElement>(`[data-index="${index}"] article`) ?? null;

function rowIndex(target: EventTarget): number | null {
  if (!(target instanceof HTMLElement) || target.tagName !== "ARTICLE") return null;
  const index = target.closest<HTMLElement>("[data-index]")?.dataset.index;
  return index === undefined ? null : Number(index);
}

const lastSent = (items: readonly LocalMessage[], me: string) =>
  items.findLast(({ sender, delivery }) => sender.username === me && delivery === "sent");
