import type { LocalMessage } from "@parley/client";
import { useClient, useMessages } from "@parley/client/react";
import { useVirtualizer } from "@tanstack/react-virtual";
import {
  type KeyboardEvent,
  type Ref,
  useCallback,
  useEffect,
  useImperativeHandle,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";
import { complain } from "../lib/action.ts";
import { useSelf } from "../lib/me.ts";
import { Announcer } from "./Announcer.tsx";
import { MessagesSkeleton } from "./ChatSkeleton.tsx";
import { useTools } from "./context.ts";
import { Empty } from "./Empty.tsx";
import { JumpToLatest } from "./JumpToLatest.tsx";
import { MessageRow } from "./MessageRow.tsx";
import { useReading } from "./reading.ts";
import { rowsOf } from "./rows.ts";
import { TypingLine } from "./TypingLine.tsx";

export interface MessageListHandle {
  jumpTo: (messageId: string) => void;
  toLatest: () => void;
}

/** Within so many pixels of the end, the list follows what comes. */
const NEAR_END = 80;
/** Older messages are asked for while so many are still above. */
const AHEAD = 12;

export function MessageList({ ref }: { ref: Ref<MessageListHandle> }) {
  const { chat } = useTools();
  const me = useSelf();
  const client = useClient();
  const { items, hasOlder, loaded } = useMessages(chat.id);
  const box = useRef<HTMLDivElement>(null);
  // Null until the list has found its place.
  const [atEnd, setAtEnd] = useState<boolean | null>(null);
  const [flash, setFlash] = useState<string | null>(null);
  const { line, seen } = useReading(chat, items, atEnd === true);
  const rows = useMemo(() => rowsOf(items, me.username, line), [items, me.username, line]);
  const latest = useRef(rows);
  latest.current = rows;
  const placed = useRef(false);

  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: (index) => estimate(rows[index]?.message),
    getItemKey: (index) => rows[index]?.key ?? index,
    anchorTo: "end",
    followOnAppend: true,
    scrollEndThreshold: NEAR_END,
    overscan: 8,
    paddingStart: 24,
    paddingEnd: 24,
    directDomUpdates: true,
    onChange: (instance) => setAtEnd((was) => (placed.current ? instance.isAtEnd() : was)),
  });

  useLayoutEffect(() => {
    if (!loaded) return;
    const fresh = latest.current.findIndex((row) => row.fresh);
    if (fresh < 0) {
      virtual.scrollToEnd();
      setAtEnd(true);
    } else virtual.scrollToIndex(fresh, { align: "start" });
    placed.current = true;
  }, [loaded, virtual]);

  const { loading, loadOlder } = useOlder(chat.id);
  const firstShown = virtual.getVirtualItems()[0]?.index ?? 0;
  useEffect(() => {
    if (loaded && hasOlder && firstShown < AHEAD) loadOlder();
  }, [loaded, hasOlder, firstShown, loadOlder]);

  const toLatest = useCallback(() => virtual.scrollToEnd(), [virtual]);
  const jumpTo = useCallback(
    async (id: string) => {
      const place = () => latest.current.findIndex(({ message }) => message.id === id);
      while (place() < 0 && client.model.get(`messages:${chat.id}`).hasOlder) {
        await client.model.loadOlder(chat.id);
        await new Promise(requestAnimationFrame);
      }
      if (place() < 0) return;
      virtual.scrollToIndex(place(), { align: "center" });
      setFlash(id);
    },
    [client, chat.id, virtual],
  );
  useImperativeHandle(ref, () => ({ toLatest, jumpTo: (id) => void jumpTo(id).catch(complain) }));

  const pressed = (event: KeyboardEvent<HTMLDivElement>) => {
    const from = rowIndex(event.target);
    if (from === null || (event.key !== "ArrowUp" && event.key !== "ArrowDown")) return;
    event.preventDefault();
    const to = Math.min(Math.max(from + (event.key === "ArrowUp" ? -1 : 1), 0), rows.length - 1);
    virtual.scrollToIndex(to);
    requestAnimationFrame(() => rowElement(box.current, to)?.focus());
  };

  const lastOwn = useMemo(() => lastSent(items, me.username), [items, me.username]);
  return (
    <div className="relative min-h-0 flex-1">
      <h2 className="sr-only">Messages</h2>
      <div
        ref={box}
        className="h-full overflow-x-hidden overflow-y-auto overscroll-contain [overflow-anchor:none]"
      >
        {loading && rows.length > 0 && (
          <p className="absolute inset-x-0 top-1 z-10 text-center text-xs text-ink-3">
            Loading earlier messages…
          </p>
        )}
        {!loaded && (
          <div className="mx-auto flex h-full max-w-3xl flex-col justify-end gap-5 p-4">
            <MessagesSkeleton />
          </div>
        )}
        {loaded && rows.length === 0 && <Empty />}
        {/* A short conversation stands at the foot of the page, where the next message will be. */}
        <div className={rows.length > 0 ? "flex min-h-full flex-col justify-end" : ""}>
          <div
            ref={virtual.containerRef}
            role="feed"
            onKeyDown={pressed}
            aria-label="Messages"
            aria-busy={loading || !loaded}
            className="relative w-full"
          >
            {virtual.getVirtualItems().map(({ key, index }) => {
              const row = rows[index];
              if (!row) return null;
              return (
                <div
                  key={key}
                  data-index={index}
                  ref={virtual.measureElement}
                  className="absolute top-0 left-0 w-full"
                >
                  <MessageRow
                    {...row}
                    tabbable={index === rows.length - 1}
                    flash={flash === row.message.id}
                    isLastOwn={row.message === lastOwn}
                  />
                </div>
              );
            })}
          </div>
        </div>
      </div>
      {atEnd === false && (
        <JumpToLatest fresh={freshCount(items, me.username, seen)} onJump={toLatest} />
      )}
      <TypingLine />
      <Announcer items={items} />
    </div>
  );
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

function freshCount(items: readonly LocalMessage[], me: string, seen: number): number {
  let fresh = 0;
  for (let index = items.length - 1; index >= 0; index--) {
    const message = items[index];
    if (!message || (message.seq !== 0 && message.seq <= seen)) break;
    if (message.sender.username !== me) fresh++;
  }
  return fresh;
}

function useOlder(chatId: string) {
  const client = useClient();
  const [loading, setLoading] = useState(false);
  const running = useRef(false);
  const loadOlder = useCallback(async () => {
    if (running.current) return;
    running.current = true;
    setLoading(true);
    await client.model.loadOlder(chatId).catch(() => {});
    running.current = false;
    setLoading(false);
  }, [client, chatId]);
  return { loading, loadOlder };
}
