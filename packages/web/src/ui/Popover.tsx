import { type KeyboardEvent, type ReactNode, type RefObject, useLayoutEffect, useRef } from "react";
import { useBackCloses } from "../lib/back.ts";
import { returnFocus } from "../lib/focus.ts";

interface PopoverProps {
  anchor: RefObject<HTMLElement | null>;
  label: string;
  role: "menu" | "dialog";
  onClose: () => void;
  children: ReactNode;
}

const GAP_PX = 6;
const EDGE_PX = 8;

/** Floats beside its anchor in the top layer; closes on Escape and on a click elsewhere. */
export function Popover({ anchor, label, role, onClose, children }: PopoverProps) {
  const ref = useRef<HTMLDivElement>(null);
  const latestOnClose = useRef(onClose);
  latestOnClose.current = onClose;
  useBackCloses(onClose);

  useLayoutEffect(() => {
    const floating = ref.current;
    const button = anchor.current;
    if (!floating || !button) return;
    floating.showPopover();
    place(floating, button.getBoundingClientRect());
    const first = floating.querySelector<HTMLElement>(
      "[role=menuitem], [role=menuitemradio], button, input",
    );
    (floating.querySelector<HTMLElement>("[data-autofocus]") ?? first)?.focus({
      preventScroll: true,
    });
    const handleResize = () => place(floating, button.getBoundingClientRect());
    addEventListener("resize", handleResize);
    return () => removeEventListener("resize", handleResize);
  }, [anchor]);

  // A layout effect, because the popover must still be in the page when the focus leaves it.
  useLayoutEffect(() => {
    const floating = ref.current;
    const button = anchor.current;
    const handleToggle = (event: ToggleEvent) =>
      event.newState === "closed" && latestOnClose.current();
    floating?.addEventListener("toggle", handleToggle);
    return () => {
      floating?.removeEventListener("toggle", handleToggle);
      if (floating?.contains(document.activeElement) || document.activeElement === document.body)
        returnFocus(button);
    };
  }, [anchor]);

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the caller gives the role
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: both roles have names
    <div
      ref={ref}
      popover="auto"
      role={role}
      aria-label={label}
      tabIndex={-1}
      onKeyDown={role === "menu" ? moveInMenu : undefined}
      className="fixed inset-auto m-0 max-h-[calc(100dvh-1rem)] animate-fade overflow-y-auto rounded-lg bg-raised p-1 text-ink shadow-pop"
    >
      {children}
    </div>
  );
}

function place(floating: HTMLElement, anchor: DOMRect): void {
  const { width, height } = floating.getBoundingClientRect();
  const below = anchor.bottom + GAP_PX + height <= innerHeight - EDGE_PX;
  const top = below ? anchor.bottom + GAP_PX : Math.max(EDGE_PX, anchor.top - GAP_PX - height);
  const left = Math.min(Math.max(EDGE_PX, anchor.right - width), innerWidth - width - EDGE_PX);
  floating.style.top = `${top}px`;
  floating.style.left = `${Math.max(EDGE_PX, left)}px`;
}

/** Arrows, Home and End move between the items of a menu. */
export function moveInMenu(event: KeyboardEvent<HTMLDivElement>): void {
  const items = [...event.currentTarget.querySelectorAll<HTMLElement>("[role^=menuitem]")];
  const at = items.indexOf(document.activeElement as HTMLElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  items.at(to % items.length)?.focus();
}
