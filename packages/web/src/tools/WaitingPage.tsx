import type { PendingQuestion, PendingToolCall } from "@parley/protocol";
import {
  type HTMLAttributes,
  type KeyboardEvent,
  type RefObject,
  useEffect,
  useLayoutEffect,
  useRef,
} from "react";
import { isTouch } from "../lib/screen.ts";
import { toast } from "../lib/toasts.ts";
import { Page } from "../shell/Page.tsx";
import { Icon } from "../ui/Icon.tsx";
import { Skeleton } from "../ui/Skeleton.tsx";
import { FetchProblem } from "../ui/Unfetched.tsx";
import { callTitle } from "./calls.ts";
import { isDecidedHere } from "./decision.ts";
import { usePending } from "./pending.ts";
import { WaitingCall } from "./WaitingCall.tsx";
import { WaitingQuestion } from "./WaitingQuestion.tsx";

/** Everything that waits for the person's decision, from all conversations. */
export default function WaitingPage() {
  const { items, questions, problem, refresh } = usePending();
  return (
    <Page
      title="Waiting for you"
      intro="What your agents may do only if you approve it, and what their tools ask you."
    >
      {problem !== null && <FetchProblem problem={problem} onRetry={refresh} />}
      {items === null && problem === null && <Skeleton className="h-56" />}
      {questions.length > 0 && <Questions questions={questions} />}
      {items?.length === 0 && questions.length === 0 && <Nothing />}
      {items && items.length > 0 && <WaitingList items={items} />}
    </Page>
  );
}

function WaitingList({ items }: { items: readonly PendingToolCall[] }) {
  const list = useRef<HTMLUListElement>(null);
  // The keys work as soon as the page opens.
  useEffect(() => {
    const isTyping = document.activeElement?.closest("input, textarea, dialog");
    if (isTyping || isTouch()) return;
    cardsOf(list.current)[0]?.focus();
  }, []);
  const { focused, ...keepFocus } = useFocusInList(items, list);
  useLayoutEffect(() => {
    const handleKey = (event: globalThis.KeyboardEvent) => {
      const place = items.findIndex(({ call }) => call.id === focused.current?.item.call.id);
      if (isBeside(event.target, list.current)) handlePageKey(event, cardsOf(list.current), place);
    };
    addEventListener("keydown", handleKey);
    return () => removeEventListener("keydown", handleKey);
  }, [items, focused]);
  return (
    <>
      <Keys />
      <ul
        ref={list}
        tabIndex={-1}
        {...keepFocus}
        aria-label="Waiting for you"
        onKeyDown={(event) => moveInList(event, list.current)}
        className="flex flex-col gap-4 outline-none"
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

/** Whether it is the page around the list, which gets the focus when the person clicks beside the cards. */
const isBeside = (target: EventTarget | null, list: HTMLElement | null) =>
  target instanceof Element && target !== list && target.contains(list);

/** The card that has the focus, or had it before the person clicked beside all of them. */
interface Focused {
  place: number;
  item: PendingToolCall;
}

/**
 * The card with the focus disappears when its call is decided. If it was decided here, the next one gets
 * the focus; otherwise the list does, so that a key does not decide about a call that nobody chose.
 */
function useFocusInList(
  items: readonly PendingToolCall[],
  list: RefObject<HTMLElement | null>,
): Pick<HTMLAttributes<HTMLElement>, "onFocus" | "onBlur"> & {
  focused: RefObject<Focused | null>;
} {
  const focused = useRef<Focused | null>(null);
  useLayoutEffect(() => {
    if (!focused.current || document.activeElement !== document.body) return;
    const { place, item } = focused.current;
    if (items.some(({ call }) => call.id === item.call.id)) return;
    const cards = cardsOf(list.current);
    if (isDecidedHere(item.call.id)) cards[Math.min(place, cards.length - 1)]?.focus();
    else {
      list.current?.focus();
      toast(`${callTitle(item.call)} no longer waits for you.`);
    }
  }, [items, list]);
  return {
    focused,
    onFocus: ({ target }) => {
      const place = cardsOf(list.current).findIndex((card) => card.contains(target));
      const item = items[place];
      focused.current = item ? { place, item } : null;
    },
    // A card that is removed loses the focus to nothing.
    onBlur: ({ relatedTarget }) => {
      if (relatedTarget && !isBeside(relatedTarget, list.current)) focused.current = null;
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

/**
 * The keys also work while no control has the focus: for the card that had it last. If there is none, the
 * first one gets the focus, so that a key does not decide about a call that nobody chose.
 */
function handlePageKey(
  event: globalThis.KeyboardEvent,
  cards: readonly HTMLElement[],
  place: number,
): void {
  const { key, ctrlKey, metaKey, altKey, repeat } = event;
  if (ctrlKey || metaKey || altKey || repeat) return;
  if (!"jkaro".includes(key.toLowerCase()) || document.querySelector("dialog[open]")) return;
  const card = cards[place] ?? cards[0];
  card?.focus();
  if (cards[place]) card?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
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

/** What tools ask: it is answered in its conversation. */
const Questions = ({ questions }: { questions: readonly PendingQuestion[] }) => (
  <ul aria-label="Questions of tools" className="flex flex-col gap-2">
    {questions.map((question) => (
      <li key={question.message_id}>
        <WaitingQuestion question={question} />
      </li>
    ))}
  </ul>
);

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
