import { type MouseEvent, type PointerEvent, useRef } from "react";

interface TouchActions {
  onLongPress: () => void;
  /** Without it, the element does not follow the finger. */
  onSwipe?: () => void;
  /** The element is a button itself, so touches on it are not ignored. */
  isControl?: boolean;
}

const LONG_PRESS_MS = 450;
/** A touch that moves further is a scroll or a swipe. */
const SLOP_PX = 10;
/** Releasing after this distance replies to the message. */
const SWIPE_PX = 56;
const MAX_PULL_PX = 72;

/** Elements that handle touches themselves. Files take a click, a long press and a swipe. */
const OWN_GESTURES =
  "pre, section[aria-label=Table], a:not([data-pressable]), button:not([data-pressable]), input, select, textarea, audio, video";

/**
 * Event handlers for a long press and for a swipe to the left. During a swipe the element moves with the
 * finger and has `data-pulling`; it has `data-pulled` once releasing calls `onSwipe`.
 */
export function useTouch({ onLongPress, onSwipe, isControl = false }: TouchActions) {
  const touch = useRef<{ x: number; y: number; timer: Timer; pulling: boolean } | null>(null);

  const isHandledInside = (target: EventTarget) => !isControl && handlesTouch(target);

  const end = (element: HTMLElement) => {
    clearTimeout(touch.current?.timer);
    touch.current = null;
    element.style.transform = "";
    element.removeAttribute("data-pulling");
    element.removeAttribute("data-pulled");
  };

  return {
    onPointerDown(event: PointerEvent<HTMLElement>) {
      if (event.pointerType !== "touch" || !event.isPrimary || isHandledInside(event.target))
        return;
      // Only the innermost element with a long press handles it.
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
      const pulled = Math.min(Math.max(left, 0), MAX_PULL_PX);
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
    /** Prevents the long press of the browser, which selects a word and opens a menu. */
    onContextMenu(event: MouseEvent<HTMLElement>) {
      const { pointerType } = event.nativeEvent as Partial<globalThis.PointerEvent>;
      if (pointerType === "touch" && !isHandledInside(event.target)) event.preventDefault();
    },
  };
}

/** Ignores the click after a long press, which would hit the sheet that opened under the finger. */
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

const handlesTouch = (target: EventTarget) =>
  target instanceof Element && target.closest(OWN_GESTURES) !== null;
