import type { Account } from "@parley/protocol";
import { useId } from "react";
import { nameOf } from "../lib/names.ts";
import { AccountLabel } from "../ui/AccountLabel.tsx";
import { Avatar } from "../ui/Avatar.tsx";
import { Icon } from "../ui/Icon.tsx";
import { type PickerProps, usePicker } from "./picker.ts";

/**
 * A combobox that collects people: arrows move, Enter chooses, Backspace removes the last one. With
 * people chosen and nothing typed, Enter submits the form.
 */
export function PeoplePicker(props: PickerProps) {
  const { chosen, onChange } = props;
  const id = useId();
  const picker = usePicker(props);
  const { query, offered, active, confusable, problem, isKnown } = picker;
  return (
    <div className="flex shrink-0 flex-col gap-2">
      <div className="flex flex-wrap items-center gap-1.5 rounded-md border border-edge bg-surface p-1.5 focus-within:outline-2 focus-within:outline-offset-[-2px] focus-within:outline-accent">
        {chosen.map((account) => (
          <Chip
            key={account.username}
            account={account}
            withUsername={confusable.has(account.username)}
            onRemove={() => onChange(chosen.filter((one) => one !== account))}
          />
        ))}
        <input
          role="combobox"
          aria-label="Find people and agents"
          aria-expanded={offered.length > 0}
          aria-controls={`${id}-list`}
          aria-activedescendant={active ? `${id}-${active.username}` : undefined}
          aria-autocomplete="list"
          autoComplete="off"
          placeholder={chosen.length > 0 ? "" : "Name or username"}
          value={query}
          onChange={(event) => picker.type(event.target.value)}
          onKeyDown={picker.handleKey}
          className="h-7 min-w-24 flex-1 bg-transparent px-1.5 text-base outline-none pointer-coarse:text-[1rem]"
        />
      </div>
      <div
        id={`${id}-list`}
        role="listbox"
        aria-label="People"
        className="max-h-[min(16rem,35dvh)] min-h-24 overflow-y-auto"
      >
        {offered.map((account) => (
          <PersonOption
            key={account.username}
            id={`${id}-${account.username}`}
            account={account}
            active={account === active}
            onTake={() => picker.take(account)}
          />
        ))}
      </div>
      {isKnown && offered.length === 0 && (
        <p
          role="status"
          className="-mt-24 flex h-24 items-center justify-center text-sm text-ink-3"
        >
          {problem ?? (query ? `Nobody is called «${query}».` : "Nobody else is here yet.")}
        </p>
      )}
    </div>
  );
}

interface OptionProps {
  id: string;
  account: Account;
  active: boolean;
  onTake: () => void;
}

function PersonOption({ id, account, active, onTake }: OptionProps) {
  return (
    // biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus
    // biome-ignore lint/a11y/useKeyWithClickEvents: the field takes the keys
    <div
      id={id}
      role="option"
      aria-selected={active}
      onClick={onTake}
      ref={(element) => {
        if (active) element?.scrollIntoView({ block: "nearest" });
      }}
      className={`flex cursor-pointer items-center gap-3 rounded-md px-2.5 py-2 hover:bg-hover ${active ? "bg-hover" : ""}`}
    >
      <AccountLabel account={account} />
    </div>
  );
}

interface ChipProps {
  account: Account;
  withUsername: boolean;
  onRemove: () => void;
}

function Chip({ account, withUsername, onRemove }: ChipProps) {
  return (
    <span className="inline-flex h-7 max-w-full items-center gap-1.5 rounded-full bg-accent-soft px-1 text-sm font-medium">
      <Avatar account={account} size={20} />
      <span className="truncate">{nameOf(account)}</span>
      {withUsername && <span className="truncate font-normal text-ink-2">@{account.username}</span>}
      <button
        type="button"
        aria-label={`Remove ${nameOf(account)} (@${account.username})`}
        onClick={onRemove}
        className="inline-flex size-6 shrink-0 items-center justify-center rounded-full text-ink-2 hover:bg-hover hover:text-ink"
      >
        <Icon name="close" size={12} />
      </button>
    </span>
  );
}
