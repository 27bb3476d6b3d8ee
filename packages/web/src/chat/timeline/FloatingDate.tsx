import { type RefObject, useEffect, useState } from "react";

/** How long the day is shown after the last scroll event. */
const SHOWN_MS = 1200;
/** Events with which a person scrolls. */
const SCROLL_INPUTS = ["wheel", "touchmove", "pointerdown", "keydown"];

interface FloatingDateProps {
  box: RefObject<HTMLElement | null>;
  /** The day of the first visible message; null where a separator already shows it. */
  visibleDay: () => string | null;
}

/** The day of the first visible message, shown while the person scrolls. */
export function FloatingDate({ box, visibleDay }: FloatingDateProps) {
  const [day, setDay] = useState<string | null>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isByPerson = false;
    // Only scrolling by the person counts: the list also scrolls when messages arrive.
    const noteInput = () => {
      isByPerson = true;
      clearTimeout(timer);
      timer = setTimeout(hide, SHOWN_MS);
    };
    const hide = () => {
      isByPerson = false;
      setDay(null);
    };
    const showDay = () => {
      if (!isByPerson) return;
      setDay(visibleDay());
      noteInput();
    };
    for (const event of SCROLL_INPUTS)
      element.addEventListener(event, noteInput, { passive: true });
    element.addEventListener("scroll", showDay, { passive: true });
    return () => {
      clearTimeout(timer);
      for (const event of SCROLL_INPUTS) element.removeEventListener(event, noteInput);
      element.removeEventListener("scroll", showDay);
    };
  }, [box, visibleDay]);
  if (day === null) return null;
  return (
    <p
      aria-hidden="true"
      className="pointer-events-none absolute inset-x-0 top-2 z-10 flex animate-fade justify-center"
    >
      <span className="rounded-full bg-raised px-3 py-0.5 text-xs font-medium text-ink-2 shadow-pop">
        {day}
      </span>
    </p>
  );
}
