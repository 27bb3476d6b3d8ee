import { useSyncExternalStore } from "react";

/** Whether a media query matches; renders again when that changes. */
export function useMedia(query: string): boolean {
  const list = matchMedia(query);
  return useSyncExternalStore(
    (listener) => {
      list.addEventListener("change", listener);
      return () => list.removeEventListener("change", listener);
    },
    () => list.matches,
  );
}

/** Whether only one of the list and the conversation fits: the opposite of Tailwind's `md`. */
export const useNarrow = () => useMedia("(max-width: 47.99rem)");

/** A phone: a touch screen with no room for the list beside the conversation. */
export const usePhone = () => useMedia("(pointer: coarse) and (max-width: 47.99rem)");

/** Whether fingers point: the keyboard then covers half of the page. */
export const isTouch = () => matchMedia("(pointer: coarse)").matches;
