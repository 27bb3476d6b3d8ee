import { type MouseEvent, type PointerEvent, useRef } from "react";

interface TouchActions {
  onLongPress: () => void;
  /** Without it the element is not pulled. */
  onSwipe?: () => void;
  /** The element is itself one of those that handle touches. */
  isControl?: boolean;
}

const LONG_PRESS_MS = 450;
/** A finger that moves further than this is scrolling or swiping. */
const SLOP_PX = 10;
/** How far a message is pulled before letting go replies to it. */
const SWIPE_PX = 56;
const FURTHEST_PX = 72;

/** What handles a touch itself: it is scrolled sideways, typed into or pressed. */
const OWN_GESTURES = "pre, section[aria-label=Table], a, button, input, select, textarea";

/**
 * Handlers for a touch screen: of a long press, and of a pull to the left. The element moves with the finger and has `data-pulling` meanwhile, and `data-pulled` once
 * letting go will reply.
 */
export function useTouch({ onLongPress, onSwipe, isControl = false }: TouchActions) {
  const touch = useRef<{ x: number; y: number; timer: Timer; pulling: boolean } | null>(null);

  const isTaken = (target: EventTarget) => !isControl && isOwn(target);

  const end = (element: HTMLElement) => {
    clearTimeout(touch.current?.timer);
    touch.current = null;
    element.style.transform = "";
    element.removeAttribute("data-pulling");
    element.removeAttribute("data-pulled");
  };

  return {
    onPointerDown(event: PointerEvent<HTMLElement>) {
      if (event.pointerType !== "touch" || !event.isPrimary || isTaken(event.target)) return;
      // What is inside of something that is pressed long is not pressed itself.
      event.stopPropagation();
      const element = event.currentTarget;
      const timer = setTimeout(() => {
        end(element);
        ignoreClick();
        onLongPress();
      }, LONG_PRESS_MS);
      touch.current = { x: event.clientX, y: event.clientY, timer, pulling: false };
    },
    onPointerMove(event: PointerEvent<HTMLElement>) {
      const from = touch.current;
      if (!from) return;
      const left = from.x - event.clientX;
      const down = Math.abs(event.clientY - from.y);
      if (!from.pulling && Math.max(Math.abs(left), down) < SLOP_PX) return;
      clearTimeout(from.timer);
      if (!onSwipe || (!from.pulling && left < down)) return end(event.currentTarget);
      from.pulling = true;
      event.currentTarget.setAttribute("data-pulling", "");
      const pulled = Math.min(Math.max(left, 0), FURTHEST_PX);
      event.currentTarget.style.transform = `translateX(${-pulled}px)`;
      event.currentTarget.toggleAttribute("data-pulled", pulled >= SWIPE_PX);
    },
    onPointerUp(event: PointerEvent<HTMLElement>) {
      const isReply = event.currentTarget.hasAttribute("data-pulled");
      end(event.currentTarget);
      if (isReply) onSwipe?.();
    },
    onPointerCancel(event: PointerEvent<HTMLElement>) {
      end(event.currentTarget);
    },
    /** The browser's own long press would select a word and show its menu over the sheet. */
    onContextMenu(event: MouseEvent<HTMLElement>) {
      const { pointerType } = event.nativeEvent as Partial<globalThis.PointerEvent>;
      if (pointerType === "touch" && !isTaken(event.target)) event.preventDefault();
    },
  };
}

/** Lifting the finger after a long press would click what has opened under it. */
function ignoreClick(): void {
  const ignore = (event: Event) => {
    event.stopPropagation();
    event.preventDefault();
  };
  document.addEventListener("click", ignore, { capture: true, once: true });
  const next = () => document.removeEventListener("click", ignore, { capture: true });
  document.addEventListener("pointerdown", next, { capture: true, once: true });
}

type Timer = ReturnType<typeof setTimeout>;

const isOwn = (target: EventTarget) =>
  target instanceof Element && target.closest(OWN_GESTURES) !== null;
