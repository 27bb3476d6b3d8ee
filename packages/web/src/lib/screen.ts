import { useSyncExternalStore } from "react";

/** Whether a media query holds, now and whenever that changes. */
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

/** A phone: a finger for a pointer, and no room beside the conversation. */
export const usePhone = () => useMedia("(pointer: coarse) and (max-width: 47.99rem)");
