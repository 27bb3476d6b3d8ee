import { type KeyboardEvent, memo, useId, useMemo, useState } from "react";
import {
  allEmojis,
  type Emoji,
  type EmojiCategory,
  emojiCategories,
  findEmojis,
} from "./emojis.ts";
import { frequentEmojis } from "./recent.ts";

interface GridProps {
  query: string;
  onPick: (emoji: string) => void;
  /** The focus left the grid at its upper edge, or text was typed. */
  onLeave: () => void;
}

export default function EmojiGrid({ query, onPick, onLeave }: GridProps) {
  const id = useId();
  const [first] = useState(frequent);
  const categories = useMemo(() => categoriesFor(query.trim(), first), [query, first]);
  const pickAt = (target: EventTarget) => {
    const { emoji } = (target as Element).closest<HTMLElement>("[data-emoji]")?.dataset ?? {};
    if (emoji !== undefined) onPick(emoji);
  };
  return (
    <>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the buttons inside handle the keyboard */}
      <div
        onClick={(event) => pickAt(event.target)}
        onKeyDown={(event) => move(event, onLeave)}
        className="min-h-0 flex-1 overflow-y-auto overscroll-contain"
      >
        {categories.map((category, place) => (
          <Section
            key={category.title}
            id={`${id}-${place}`}
            category={category}
            isFirst={place === 0}
          />
        ))}
        {categories.length === 0 && (
          <p className="py-6 text-center text-sm text-ink-3">None like that.</p>
        )}
      </div>
      {query.trim() === "" && (
        <div className="-mb-1 flex shrink-0 justify-between border-t border-line pt-1">
          {categories.map(({ title, sign }, place) => (
            <button
              key={title}
              type="button"
              aria-label={title}
              title={title}
              onClick={() => document.getElementById(`${id}-${place}`)?.scrollIntoView()}
              className="inline-flex size-8 items-center justify-center rounded-md font-emoji text-md opacity-70 grayscale transition hover:bg-hover hover:opacity-100 hover:grayscale-0 focus-visible:outline-offset-[-2px]"
            >
              {sign}
            </button>
          ))}
        </div>
      )}
    </>
  );
}

interface SectionProps {
  id: string;
  category: EmojiCategory;
  isFirst: boolean;
}

const Section = memo(function Section({ id, category, isFirst }: SectionProps) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: emoji are no fields of a form
    <div id={id} role="group" aria-label={category.title}>
      <p
        aria-hidden="true"
        className="sticky top-0 bg-raised px-1.5 py-1 text-xs font-medium text-ink-3"
      >
        {category.title}
      </p>
      <div className="grid grid-cols-8">
        {category.emojis.map(({ emoji, name }, place) => (
          <button
            key={emoji}
            type="button"
            data-emoji={emoji}
            aria-label={name}
            title={name}
            tabIndex={isFirst && place === 0 ? 0 : -1}
            className="inline-flex aspect-square items-center justify-center rounded-md font-emoji text-xl hover:bg-hover focus-visible:bg-hover focus-visible:outline-offset-[-2px]"
          >
            {emoji}
          </button>
        ))}
      </div>
    </div>
  );
});

function frequent(): Emoji[] {
  const known = new Map(allEmojis.map((each) => [each.emoji, each]));
  return frequentEmojis().flatMap((emoji) => known.get(emoji) ?? []);
}

function categoriesFor(query: string, first: Emoji[]): EmojiCategory[] {
  if (query === "") return [{ title: "Frequent", sign: "🕘", emojis: first }, ...emojiCategories];
  const found = findEmojis(query);
  return found.length > 0 ? [{ title: "Found", sign: "", emojis: found }] : [];
}

/** Arrow keys move between emoji by their position on the screen; letters go to the field. */
function move(event: KeyboardEvent<HTMLElement>, onLeave: () => void): void {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key.length === 1 && event.key !== " ") onLeave();
  const all = [...event.currentTarget.querySelectorAll<HTMLElement>("[data-emoji]")];
  const at = all.indexOf(document.activeElement as HTMLElement);
  if (at < 0 || !isMove(event.key)) return;
  event.preventDefault();
  const next = nextOf(all, at, event.key);
  if (next) next.focus();
  else if (event.key === "ArrowUp" || event.key === "ArrowLeft") onLeave();
}

const isMove = (key: string) => key.startsWith("Arrow") || key === "Home" || key === "End";

function nextOf(all: HTMLElement[], at: number, key: string): HTMLElement | undefined {
  if (key === "ArrowDown") return nearestInRow(all, at, 1);
  if (key === "ArrowUp") return nearestInRow(all, at, -1);
  if (key === "Home") return all[0];
  if (key === "End") return all.at(-1);
  return all[key === "ArrowRight" ? at + 1 : at - 1];
}

/** The nearest emoji in the next row up or down. */
function nearestInRow(all: HTMLElement[], at: number, step: 1 | -1): HTMLElement | undefined {
  const from = all[at]?.getBoundingClientRect();
  if (!from) return;
  const isBeyond = (top: number) => (top - from.top) * step > from.height / 2;
  const ahead = step === 1 ? all.slice(at) : all.slice(0, at).reverse();
  const row = ahead.find((each) => isBeyond(each.getBoundingClientRect().top));
  const top = row?.getBoundingClientRect().top;
  const distance = (each: HTMLElement) => Math.abs(each.getBoundingClientRect().left - from.left);
  return ahead
    .filter((each) => each.getBoundingClientRect().top === top)
    .toSorted((one, other) => distance(one) - distance(other))[0];
}
