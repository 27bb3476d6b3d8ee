import { type ReactNode, type Ref, useImperativeHandle, useRef, useState } from "react";
import { usePhone } from "../lib/screen.ts";
import { IconButton } from "./Button.tsx";
import { Icon, type IconName } from "./Icon.tsx";
import { moveInMenu, Popover } from "./Popover.tsx";
import { Sheet, SheetRow } from "./Sheet.tsx";

export interface MenuItem {
  icon: IconName;
  label: string;
  danger?: boolean;
  onSelect: () => void;
}

export interface MenuHandle {
  open: () => void;
}

interface MenuProps {
  label: string;
  icon?: IconName;
  small?: boolean;
  items: MenuItem[];
  header?: ReactNode;
  ref?: Ref<MenuHandle>;
  tabIndex?: number;
  className?: string;
}

/** A button that opens a list of commands: beside the button, or as a sheet on a phone. */
export function Menu(props: MenuProps) {
  const { label, icon = "more", small, items, header, ref, ...rest } = props;
  const anchor = useRef<HTMLButtonElement>(null);
  const [open, setOpen] = useState(false);
  useImperativeHandle(ref, () => ({ open: () => setOpen(true) }), []);
  const isPhone = usePhone();
  const close = () => setOpen(false);
  const Row = isPhone ? SheetRow : MenuRow;
  const rows = items.map((item) => (
    <Row
      key={item.label}
      {...item}
      role="menuitem"
      onSelect={() => {
        close();
        item.onSelect();
      }}
    />
  ));
  return (
    <>
      <IconButton
        {...rest}
        ref={anchor}
        icon={icon}
        label={label}
        small={small ?? false}
        aria-haspopup="menu"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      />
      {open && isPhone && (
        <Sheet label={label} onClose={close}>
          {header}
          <div
            role="menu"
            aria-label={label}
            tabIndex={-1}
            onKeyDown={moveInMenu}
            className="outline-none"
          >
            {rows}
          </div>
        </Sheet>
      )}
      {open && !isPhone && (
        <Popover anchor={anchor} label={label} role="menu" onClose={close}>
          {header}
          {rows}
        </Popover>
      )}
    </>
  );
}

function MenuRow({ icon, label, danger, onSelect }: MenuItem & { role: "menuitem" }) {
  return (
    <button
      type="button"
      role="menuitem"
      tabIndex={-1}
      onClick={onSelect}
      className={`flex h-9 w-full min-w-44 items-center gap-2.5 rounded-md px-2.5 text-left text-base whitespace-nowrap hover:bg-hover focus:bg-hover focus-visible:outline-offset-[-2px] ${danger ? "text-danger" : ""}`}
    >
      <Icon name={icon} size={16} />
      {label}
    </button>
  );
}
