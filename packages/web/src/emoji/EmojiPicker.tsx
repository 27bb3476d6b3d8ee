import { type KeyboardEvent, lazy, type RefObject, Suspense, useRef, useState } from "react";
import { Popover } from "../ui/Popover.tsx";
import { Skeleton } from "../ui/Skeleton.tsx";
import { rememberEmoji } from "./recent.ts";

const EmojiGrid = lazy(() => import("./EmojiGrid.tsx"));

interface PickerProps {
  anchor: RefObject<HTMLElement | null>;
  onPick: (emoji: string) => void;
  onClose: () => void;
}

/** A search field, and the emoji below it. */
export function EmojiPicker({ anchor, onPick, onClose }: PickerProps) {
  const [query, setQuery] = useState("");
  const field = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const pick = (emoji: string) => {
    rememberEmoji(emoji);
    onPick(emoji);
  };
  const pickBest = async () => {
    // The list may not be loaded yet.
    const { findEmojis } = await import("./emojis.ts");
    const [best] = findEmojis(query);
    if (best) pick(best.emoji);
  };
  const handleKey = (event: KeyboardEvent) => {
    if (event.key === "Enter") void pickBest();
    else if (event.key === "ArrowDown") {
      list.current?.querySelector<HTMLElement>("[data-emoji]")?.focus();
    } else return;
    event.preventDefault();
  };
  return (
    <Popover anchor={anchor} label="Emoji" role="dialog" onClose={onClose}>
      <div className="flex h-[min(23rem,70dvh)] w-80 max-w-[calc(100vw-1.5rem)] flex-col gap-1.5 p-1">
        <input
          ref={field}
          data-autofocus
          aria-label="Find an emoji"
          placeholder="Find an emoji"
          autoComplete="off"
          value={query}
          onChange={(event) => setQuery(event.target.value)}
          onKeyDown={handleKey}
          className="field min-h-9 shrink-0 py-1"
        />
        <div ref={list} className="flex min-h-0 flex-1 flex-col">
          <Suspense fallback={<Skeleton className="h-full" />}>
            <EmojiGrid query={query} onPick={pick} onLeave={() => field.current?.focus()} />
          </Suspense>
        </div>
      </div>
    </Popover>
  );
}
