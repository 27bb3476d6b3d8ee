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

const GAP = 6;
const EDGE = 8;

/** Floats beside its anchor, above everything else; closes on Escape and on a click elsewhere. */
export function Popover({ anchor, label, role, onClose, children }: PopoverProps) {
  const ref = useRef<HTMLDivElement>(null);
  const closing = useRef(onClose);
  closing.current = onClose;
  useBackCloses(onClose);

  useLayoutEffect(() => {
    const floating = ref.current;
    const beside = anchor.current;
    if (!floating || !beside) return;
    floating.showPopover();
    place(floating, beside.getBoundingClientRect());
    const first = floating.querySelector<HTMLElement>(
      "[role=menuitem], [role=menuitemradio], button, input",
    );
    (floating.querySelector<HTMLElement>("[data-autofocus]") ?? first)?.focus({
      preventScroll: true,
    });
    const resized = () => place(floating, beside.getBoundingClientRect());
    addEventListener("resize", resized);
    return () => removeEventListener("resize", resized);
  }, [anchor]);

  // While it is still in the page: without the focus in it, its anchor may be out of sight.
  useLayoutEffect(() => {
    const floating = ref.current;
    const beside = anchor.current;
    const toggled = (event: ToggleEvent) => event.newState === "closed" && closing.current();
    floating?.addEventListener("toggle", toggled);
    return () => {
      floating?.removeEventListener("toggle", toggled);
      if (floating?.contains(document.activeElement) || document.activeElement === document.body)
        returnFocus(beside);
    };
  }, [anchor]);

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: its role is given by whoever uses it
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
  const below = anchor.bottom + GAP + height <= innerHeight - EDGE;
  const top = below ? anchor.bottom + GAP : Math.max(EDGE, anchor.top - GAP - height);
  const left = Math.min(Math.max(EDGE, anchor.right - width), innerWidth - width - EDGE);
  floating.style.top = `${top}px`;
  floating.style.left = `${Math.max(EDGE, left)}px`;
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
