import { type KeyboardEvent, useId, useState } from "react";
import { isCompositionKey } from "../lib/composition.ts";
import { IconButton } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { Icon } from "../ui/Icon.tsx";
import { type Entry, useEntries } from "./entries.tsx";

interface SwitcherProps {
  onClose: () => void;
  onNewChat: () => void;
}

/** A search field for conversations, people, messages and commands. */
export function Switcher({ onClose, onNewChat }: SwitcherProps) {
  const id = useId();
  const [query, setQuery] = useState("");
  // The key instead of the index, because results of the server may be inserted above it.
  const [chosen, setChosen] = useState<string | null>(null);
  const { entries, problem, isSettled } = useEntries(query.trim(), onNewChat);
  const place = Math.max(
    0,
    entries.findIndex(({ key }) => key === chosen),
  );
  const go = (entry: Entry | undefined) => {
    if (!entry) return;
    onClose();
    entry.go();
  };
  const handleKey = (event: KeyboardEvent) => {
    if (isCompositionKey(event)) return;
    if (event.key === "ArrowDown") setChosen(entries[place + 1]?.key ?? chosen);
    else if (event.key === "ArrowUp") setChosen(entries[place - 1]?.key ?? chosen);
    else if (event.key === "Enter") go(entries[place]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Search and go to" bare wide onClose={onClose}>
      <SwitcherField
        listId={`${id}-list`}
        activeId={entries[place] && `${id}-${place}`}
        query={query}
        onQuery={(typed) => {
          setQuery(typed);
          setChosen(null);
        }}
        onKeyDown={handleKey}
        onClose={onClose}
      />
      <div
        id={`${id}-list`}
        role="listbox"
        aria-label="Results"
        className="min-h-[min(10rem,30dvh)] overflow-y-auto p-2"
      >
        {entries.length === 0 && isSettled && problem === null && (
          <p
            role="presentation"
            className="flex h-36 items-center justify-center px-4 text-sm text-ink-3"
          >
            <span className="truncate">Nothing found for «{query.trim()}».</span>
          </p>
        )}
        {entries.map((entry, index) => (
          <EntryRow
            key={entry.key}
            id={`${id}-${index}`}
            entry={entry}
            heading={entries[index - 1]?.section !== entry.section}
            active={index === place}
            onPoint={() => setChosen(entry.key)}
            onGo={() => go(entry)}
          />
        ))}
      </div>
      <div role="status">
        {problem !== null && (
          <p className="flex items-center gap-2 border-t border-line px-4 py-2.5 text-sm text-warn">
            <Icon name="offline" size={15} />
            {problem} Messages cannot be searched now.
          </p>
        )}
      </div>
    </Dialog>
  );
}

interface SwitcherFieldProps {
  listId: string;
  /** The element of the highlighted entry. */
  activeId: string | undefined;
  query: string;
  onQuery: (query: string) => void;
  onKeyDown: (event: KeyboardEvent) => void;
  onClose: () => void;
}

function SwitcherField(props: SwitcherFieldProps) {
  const { listId, activeId, query, onQuery, onKeyDown, onClose } = props;
  return (
    <div className="flex items-center gap-3 border-b border-line px-4">
      <span className="text-ink-3">
        <Icon name="search" />
      </span>
      <input
        role="combobox"
        aria-label="Search conversations, people and messages"
        aria-expanded={activeId !== undefined}
        aria-controls={listId}
        aria-activedescendant={activeId}
        aria-autocomplete="list"
        autoComplete="off"
        placeholder="Search or go to…"
        value={query}
        onChange={(event) => onQuery(event.target.value)}
        onKeyDown={onKeyDown}
        className="h-13 min-w-0 flex-1 bg-transparent text-md outline-none pointer-coarse:text-[1rem]"
      />
      <IconButton icon="close" label="Close" small className="-mr-1.5" onClick={onClose} />
    </div>
  );
}

interface EntryRowProps {
  id: string;
  entry: Entry;
  heading: boolean;
  active: boolean;
  onPoint: () => void;
  onGo: () => void;
}

function EntryRow({ id, entry, heading, active, onPoint, onGo }: EntryRowProps) {
  return (
    <>
      {heading && (
        <div role="presentation" className="px-2.5 pt-2.5 pb-1 text-xs font-medium text-ink-3">
          {entry.section}
        </div>
      )}
      {/* biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus */}
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: the field takes the keys */}
      <div
        id={id}
        role="option"
        aria-selected={active}
        // Not when the list moves under a resting mouse: the keys choose then.
        onPointerMove={({ movementX, movementY }) => {
          if (movementX !== 0 || movementY !== 0) onPoint();
        }}
        onClick={onGo}
        ref={(element) => {
          if (active) element?.scrollIntoView({ block: "nearest" });
        }}
        className={`flex cursor-pointer items-center gap-3 rounded-md px-2.5 py-2 ${active ? "bg-hover [--ground:var(--color-hover)]" : "[--ground:var(--color-raised)]"}`}
      >
        {entry.view}
      </div>
    </>
  );
}
