import type { PendingToolCall } from "@parley/protocol";
import {
  type HTMLAttributes,
  type KeyboardEvent,
  type RefObject,
  useEffect,
  useLayoutEffect,
  useRef,
} from "react";
import { describeError } from "../lib/errors.ts";
import { Page } from "../shell/Page.tsx";
import { Button } from "../ui/Button.tsx";
import { Icon } from "../ui/Icon.tsx";
import { Notice } from "../ui/Notice.tsx";
import { Skeleton } from "../ui/Skeleton.tsx";
import { usePending } from "./pending.ts";
import { WaitingCall } from "./WaitingCall.tsx";

/** Everything that waits for the person's decision, from all conversations. */
export default function WaitingPage() {
  const { items, problem, refresh } = usePending();
  return (
    <Page title="Waiting for you" intro="What your agents may do only if you approve it.">
      {problem !== null && (
        <div className="flex flex-wrap items-center gap-3">
          <Notice>{describeError(problem)}</Notice>
          <Button size="small" icon="retry" onClick={refresh}>
            Try again
          </Button>
        </div>
      )}
      {items === null && problem === null && <Skeleton className="h-56" />}
      {items?.length === 0 && <Nothing />}
      {items && items.length > 0 && <WaitingList items={items} />}
    </Page>
  );
}

function WaitingList({ items }: { items: readonly PendingToolCall[] }) {
  const list = useRef<HTMLUListElement>(null);
  // The keys work as soon as the page opens.
  useEffect(() => {
    const isTyping = document.activeElement?.closest("input, textarea, dialog");
    if (isTyping || matchMedia("(pointer: coarse)").matches) return;
    cardsOf(list.current)[0]?.focus();
  }, []);
  const keepFocus = useFocusInList(items, list);
  return (
    <>
      <Keys />
      <ul
        ref={list}
        {...keepFocus}
        aria-label="Waiting for you"
        onKeyDown={(event) => moveInList(event, list.current)}
        className="flex flex-col gap-4"
      >
        {items.map((item) => (
          <WaitingCall key={item.call.id} item={item} />
        ))}
      </ul>
    </>
  );
}

const cardsOf = (list: HTMLElement | null) => [
  ...(list?.querySelectorAll<HTMLElement>("li > [role=group]") ?? []),
];

/** The card with the focus disappears when its call is decided: the next one gets the focus. */
function useFocusInList(
  items: readonly PendingToolCall[],
  list: RefObject<HTMLElement | null>,
): Pick<HTMLAttributes<HTMLElement>, "onFocus" | "onBlur"> {
  const place = useRef(-1);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the cards follow from the items
  useLayoutEffect(() => {
    if (place.current === -1 || document.activeElement !== document.body) return;
    const cards = cardsOf(list.current);
    cards[Math.min(place.current, cards.length - 1)]?.focus();
  }, [items, list]);
  return {
    onFocus: ({ target }) => {
      place.current = cardsOf(list.current).findIndex((card) => card.contains(target));
    },
    // A button that is disabled during its call loses the focus to nothing.
    onBlur: ({ relatedTarget }) => {
      if (relatedTarget) place.current = -1;
    },
  };
}

/** `j` and `k` move from card to card. */
function moveInList(event: KeyboardEvent, list: HTMLElement | null): void {
  const { key, ctrlKey, metaKey, altKey, target } = event;
  if (ctrlKey || metaKey || altKey || target instanceof HTMLTextAreaElement) return;
  const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[key];
  if (step === undefined || !(target instanceof Element)) return;
  const cards = cardsOf(list);
  const here = cards.findIndex((card) => card.contains(target));
  // Arrows scroll long arguments.
  if (key.startsWith("Arrow") && target !== cards[here]) return;
  const next = cards[here + step];
  event.preventDefault();
  next?.focus({ preventScroll: true });
  next?.scrollIntoView({ block: "nearest" });
}

const keys: [string, string][] = [
  ["J", "next"],
  ["K", "previous"],
  ["A", "approve"],
  ["R", "reject"],
  ["O", "open the message"],
];

function Keys() {
  return (
    <p className="flex flex-wrap gap-x-4 gap-y-1 text-sm text-ink-3 pointer-coarse:hidden">
      {keys.map(([key, meaning]) => (
        <span key={key} className="inline-flex items-center gap-1.5">
          <kbd className="rounded-xs border border-line bg-surface px-1.5 font-sans text-xs text-ink-2">
            {key}
          </kbd>
          {meaning}
        </span>
      ))}
    </p>
  );
}

function Nothing() {
  return (
    <div className="flex flex-col items-center gap-3 rounded-lg border border-dashed border-line px-6 py-14 text-center">
      <span className="text-good">
        <Icon name="check" size={28} />
      </span>
      <p className="text-md font-medium">Nothing waits for you</p>
      <p className="max-w-sm text-base text-ink-2">
        When an agent of yours needs your approval to use a tool, it is listed here.
      </p>
    </div>
  );
}
