import { type RefObject, useEffect, useState } from "react";

/** How long the day stays in sight after the last movement. */
const SHOWN_MS = 1200;
/** What a person scrolls with. */
const BY_HAND = ["wheel", "touchmove", "pointerdown", "keydown"];

interface FloatingDateProps {
  box: RefObject<HTMLElement | null>;
  /** The day of the first message in sight; null where it is written anyway. */
  dayInSight: () => string | null;
}

/** The day that one is reading, over the messages while they are scrolled. */
export function FloatingDate({ box, dayInSight }: FloatingDateProps) {
  const [day, setDay] = useState<string | null>(null);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let byHand = false;
    // The list also scrolls by itself, as when messages come: then nobody is looking for a day.
    const touched = () => {
      byHand = true;
      clearTimeout(timer);
      timer = setTimeout(rest, SHOWN_MS);
    };
    const rest = () => {
      byHand = false;
      setDay(null);
    };
    const scrolled = () => {
      if (!byHand) return;
      setDay(dayInSight());
      touched();
    };
    for (const event of BY_HAND) element.addEventListener(event, touched, { passive: true });
    element.addEventListener("scroll", scrolled, { passive: true });
    return () => {
      clearTimeout(timer);
      for (const event of BY_HAND) element.removeEventListener(event, touched);
      element.removeEventListener("scroll", scrolled);
    };
  }, [box, dayInSight]);
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
