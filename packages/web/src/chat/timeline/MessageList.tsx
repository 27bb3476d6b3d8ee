import type { LocalMessage, MessageWindow } from "@parley/client";
import { useAside, useClient, useMessages, useStatus } from "@parley/client/react";
import {
  lazy,
  type Ref,
  type RefObject,
  Suspense,
  useCallback,
  useEffect,
  useImperativeHandle,
  useRef,
  useState,
} from "react";
import { describeError, showError } from "../../lib/errors.ts";
import { chatPath, navigate } from "../../lib/router.ts";
import { MessagesSkeleton } from "../ChatSkeleton.tsx";
import { useChatContext } from "../context.ts";
import { loadedMessage, stableId } from "../loaded-message.ts";
import { Problem, ProblemButton } from "../Problem.tsx";
import { Announcer } from "./Announcer.tsx";
import { useDeletionFocus } from "./deletion-focus.ts";
import { EmptyChat } from "./EmptyChat.tsx";
import { Feed, type FeedHandle } from "./Feed.tsx";
import type { Start } from "./feed-opening.ts";
import { JumpToLatest } from "./JumpToLatest.tsx";
import { useReadMarker } from "./read-marker.ts";
import { isFirstUnreadOlder } from "./rows.ts";
import { TypingLine } from "./TypingLine.tsx";

const NewMessagesAbove = lazy(() => import("./NewMessagesAbove.tsx"));

export interface MessageListHandle {
  jumpTo: (messageId: string) => void;
  toLatest: () => void;
}

interface MessageListProps {
  ref: Ref<MessageListHandle>;
  /** Why the latest messages could not be loaded. */
  problem: unknown;
  onRetry: () => void;
}

/** The latest messages; or a window around an older one (`aside`), until it reaches the latest. */
export function MessageList({ ref, problem, onRetry }: MessageListProps) {
  const { chat } = useChatContext();
  const live = useMessages(chat.id);
  const aside = useAside(chat.id);
  const shown = aside ?? live;
  const feed = useRef<FeedHandle>(null);
  const start = useRef<Start>("saved");
  // Null until the scroll position is known.
  const [atEnd, setAtEnd] = useState<boolean | null>(null);
  const { readUpTo, unread } = useReadMarker(chat, live.items, atEnd === true && !aside);
  const windowNumber = useWindowNumber(shown.items);
  const { loading, failure, load } = useMore(chat.id, aside !== null);
  const isEmpty = shown.items.length === 0;
  // All messages that were loaded may have been deleted.
  const remaining = live.loaded && isEmpty ? directionOfMore(shown) : null;
  useEffect(() => {
    if (remaining !== null && loading === null && failure === null) void load(remaining);
  }, [remaining, loading, failure, load]);

  const { toLatest, jumpTo } = useJumps(feed, start);
  useImperativeHandle(ref, () => ({ toLatest, jumpTo: (id) => void jumpTo(id).catch(showError) }), [
    toLatest,
    jumpTo,
  ]);

  const list = useRef<HTMLDivElement>(null);
  useDeletionFocus(list, shown.items);
  const shownProblem = live.loaded ? remaining && failure : problem;
  return (
    <div ref={list} className="relative min-h-0 flex-1">
      <h2 className="sr-only">Messages</h2>
      {loading === "older" && !isEmpty && (
        <p className="absolute inset-x-0 top-1 z-10 text-center text-xs text-ink-3">
          Loading earlier messages…
        </p>
      )}
      {shownProblem !== null && (
        <div className="absolute inset-x-0 top-1 z-10 flex justify-center px-4">
          <Problem
            actions={
              <ProblemButton onClick={remaining ? () => load(remaining) : onRetry}>
                Try again
              </ProblemButton>
            }
          >
            The messages could not be loaded: {describeError(shownProblem)}
          </Problem>
        </div>
      )}
      {isEmpty && shownProblem === null && (!live.loaded || remaining !== null) && (
        <div className="mx-auto flex h-full max-w-3xl flex-col justify-end gap-5 p-4">
          <MessagesSkeleton />
        </div>
      )}
      {live.loaded && isEmpty && remaining === null && <EmptyChat />}
      {!isEmpty && (
        <Feed
          key={live.loaded ? windowNumber : "early"}
          ref={feed}
          window={shown}
          readUpTo={readUpTo}
          start={start}
          onAtEnd={setAtEnd}
          onMore={load}
          busy={loading !== null || !live.loaded}
        />
      )}
      {/* Messages fade out above the composer. */}
      <div className="pointer-events-none absolute inset-x-0 bottom-0 h-6 bg-linear-to-t from-canvas" />
      {(atEnd === false || aside) && <JumpToLatest unread={chat.unread_count} onJump={toLatest} />}
      {readUpTo !== null && !aside && isFirstUnreadOlder(live, readUpTo) && (
        <Suspense>
          <NewMessagesAbove readUpTo={readUpTo} unread={unread} onFound={jumpTo} />
        </Suspense>
      )}
      <TypingLine />
      <Announcer items={live.items} />
    </div>
  );
}

/** Scrolls to the latest message or to a given one, which may have to be loaded first. */
function useJumps(feed: RefObject<FeedHandle | null>, start: RefObject<Start>) {
  const { chat } = useChatContext();
  const { model } = useClient();
  const toLatest = useCallback(() => {
    // The next load of the page does not go back to the message that the address names.
    if (location.hash !== "") navigate(chatPath(chat.id), { replace: true });
    if (!model.get(`aside:${chat.id}`)) return feed.current?.toEnd();
    start.current = "latest";
    model.closeAside(chat.id);
  }, [model, chat.id, feed, start]);

  const jumpTo = useCallback(
    async (id: string) => {
      await model.openChat(chat.id);
      if (feed.current?.show(id)) return;
      start.current = { message: id };
      try {
        if (loadedMessage(model, chat.id, id)) model.closeAside(chat.id);
        else await model.showAround(chat.id, id);
        await new Promise(requestAnimationFrame);
        feed.current?.show(id);
      } finally {
        start.current = "saved";
      }
    },
    [model, chat.id, feed, start],
  );
  return { toLatest, jumpTo };
}

/** A number that changes when the shown messages do not continue those shown before. */
function useWindowNumber(items: readonly LocalMessage[]): number {
  const last = useRef({ number: 0, ends: new Set<string>() });
  const { ends } = last.current;
  const continues =
    ends.size === 0 || items.length === 0 || items.some((each) => ends.has(stableId(each)));
  last.current = {
    number: continues ? last.current.number : last.current.number + 1,
    ends: new Set(
      [items[0], items.at(-1)].flatMap((message) => (message ? stableId(message) : [])),
    ),
  };
  return last.current.number;
}

type Direction = "older" | "newer";

const directionOfMore = ({ hasOlder, hasNewer }: MessageWindow): Direction | null =>
  hasOlder ? "older" : hasNewer ? "newer" : null;

function useMore(chatId: string, aside: boolean) {
  const { model } = useClient();
  const isOnline = useStatus() === "online";
  const [loading, setLoading] = useState<Direction | null>(null);
  /** Why the latest page could not be loaded; null if it could, or after a reconnect. */
  const [failure, setFailure] = useState<unknown>(null);
  useEffect(() => {
    if (isOnline) setFailure(null);
  }, [isOnline]);
  const running = useRef(new Set<Direction>());
  const load = useCallback(
    async (direction: Direction) => {
      if (running.current.has(direction)) return;
      running.current.add(direction);
      setLoading(direction);
      setFailure(null);
      const more = aside ? model.loadAside(chatId, direction) : model.loadOlder(chatId);
      // If it fails, scrolling to the edge again loads the page.
      await more.catch(setFailure);
      running.current.delete(direction);
      setLoading(running.current.size > 0 ? direction : null);
    },
    [model, chatId, aside],
  );
  return { loading, failure, load };
}
