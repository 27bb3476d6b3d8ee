import type { LocalMessage } from "@parley/client";
import { type RefObject, useEffect, useLayoutEffect, useRef } from "react";
import { stableId } from "../loaded-message.ts";

/**
 * When the message with the focus is deleted, focuses the next one, or the one before if it was the
 * last; after the only one, the composer.
 */
export function useDeletionFocus(
  list: RefObject<HTMLElement | null>,
  items: readonly LocalMessage[],
) {
  const focused = useRef<string | null>(null);
  const previous = useRef(items);
  useLayoutEffect(() => {
    const before = previous.current;
    previous.current = items;
    const id = focused.current;
    if (id === null || document.activeElement !== document.body || indexOf(items, id) !== -1)
      return;
    focused.current = null;
    const index = indexOf(before, id);
    if (index === -1) return;
    const neighbour = before[index + 1] ?? before[index - 1];
    const target = neighbour
      ? list.current?.querySelector(`[data-index="${indexOf(items, stableId(neighbour))}"] article`)
      : list.current?.parentElement?.querySelector("textarea");
    if (target instanceof HTMLElement) target.focus({ preventScroll: true });
  }, [items, list]);
  useEffect(() => {
    const box = list.current;
    const remember = ({ target }: FocusEvent) => {
      const row = target instanceof Element && target.closest<HTMLElement>("[data-index]");
      const item = row ? previous.current[Number(row.dataset.index)] : undefined;
      focused.current = item ? stableId(item) : null;
    };
    box?.addEventListener("focusin", remember);
    return () => box?.removeEventListener("focusin", remember);
  }, [list]);
}

const indexOf = (items: readonly LocalMessage[], id: string) =>
  items.findIndex((each) => stableId(each) === id);
