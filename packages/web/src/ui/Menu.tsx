import { type ReactNode, useRef, useState } from "react";
import { IconButton } from "./Button.tsx";
import { Icon, type IconName } from "./Icon.tsx";
import { Popover } from "./Popover.tsx";

export interface MenuItem {
  icon: IconName;
  label: string;
  danger?: boolean;
  onSelect: () => void;
}

interface MenuProps {
  label: string;
  icon?: IconName;
  small?: boolean;
  items: MenuItem[];
  header?: ReactNode;
}

/** A button that opens a list of commands. */
export function Menu({ label, icon = "more", small, items, header }: MenuProps) {
  const anchor = useRef<HTMLButtonElement>(null);
  const [open, setOpen] = useState(false);
  return (
    <>
      <IconButton
        ref={anchor}
        icon={icon}
        label={label}
        small={small ?? false}
        aria-haspopup="menu"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      />
      {open && (
        <Popover anchor={anchor} label={label} role="menu" onClose={() => setOpen(false)}>
          {header}
          {items.map((item) => (
            <MenuRow
              key={item.label}
              {...item}
              onSelect={() => {
                setOpen(false);
                item.onSelect();
              }}
            />
          ))}
        </Popover>
      )}
    </>
  );
}

function MenuRow({ icon, label, danger, onSelect }: MenuItem) {
  return (
    <button
      type="button"
      role="menuitem"
      tabIndex={-1}
      onClick={onSelect}
      className={`flex h-9 w-full min-w-44 items-center gap-2.5 rounded-md px-2.5 text-left text-base hover:bg-hover focus:bg-hover focus-visible:outline-offset-[-2px] ${danger ? "text-danger" : ""}`}
    >
      <Icon name={icon} size={16} />
      {label}
    </button>
  );
}
