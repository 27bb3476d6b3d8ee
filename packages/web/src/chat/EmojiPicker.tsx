import { type KeyboardEvent, type RefObject, useState } from "react";
import { Popover } from "../ui/Popover.tsx";
import { emojis } from "./emojis.ts";

interface PickerProps {
  anchor: RefObject<HTMLElement | null>;
  onPick: (emoji: string) => void;
  onClose: () => void;
}

const COLUMNS = 8;

export function EmojiPicker({ anchor, onPick, onClose }: PickerProps) {
  const [query, setQuery] = useState("");
  const found = emojis.filter(([, words]) => words.includes(query.trim().toLowerCase()));
  return (
    <Popover anchor={anchor} label="Emoji" role="dialog" onClose={onClose}>
      <div className="flex w-72 flex-col gap-2 p-1">
        <input
          data-autofocus
          aria-label="Find an emoji"
          placeholder="Find an emoji"
          value={query}
          onChange={(event) => setQuery(event.target.value)}
          onKeyDown={(event) => {
            const [first] = found;
            if (event.key === "Enter" && first) onPick(first[0]);
          }}
          className="field min-h-9 py-1"
        />
        {/* biome-ignore lint/a11y/useSemanticElements: emoji are no list of words */}
        <div
          role="group"
          aria-label="Emoji"
          onKeyDown={move}
          className="grid max-h-56 grid-cols-8 overflow-y-auto"
        >
          {found.map(([emoji, words]) => (
            <button
              key={emoji}
              type="button"
              aria-label={words.split(",")[0]}
              title={words.split(",")[0]}
              onClick={() => onPick(emoji)}
              className="inline-flex size-8.5 items-center justify-center rounded-md font-emoji text-lg hover:bg-hover focus-visible:outline-offset-[-2px]"
            >
              {emoji}
            </button>
          ))}
        </div>
        {found.length === 0 && (
          <p className="pb-3 text-center text-sm text-ink-3">None like that.</p>
        )}
      </div>
    </Popover>
  );
}

function move(event: KeyboardEvent<HTMLElement>): void {
  const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: COLUMNS, ArrowUp: -COLUMNS }[event.key];
  if (by === undefined) return;
  const all = [...event.currentTarget.querySelectorAll("button")];
  const next = all[all.indexOf(document.activeElement as HTMLButtonElement) + by];
  if (!next) return;
  event.preventDefault();
  next.focus();
}
