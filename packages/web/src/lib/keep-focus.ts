import { type RefCallback, useCallback } from "react";

/** Where the focus goes, nearest first, in the order of these selectors. */
const HEADINGS = ["h1, h2, h3"];

/**
 * When the focused element is removed, such as a button that has done its work, focuses its message, or
 * what `near` finds closest to it. Otherwise the browser would move the focus to the top of the document.
 */
export function useFocusKept(near: readonly string[] = HEADINGS): RefCallback<HTMLElement> {
  return useCallback(
    (root) => {
      if (!root) return;
      let focused: Element[] = [];
      const remember = ({ target }: FocusEvent) => {
        focused = target instanceof Element ? ancestors(target, root) : [];
      };
      const observer = new MutationObserver(() => {
        const isFree = document.activeElement === document.body;
        if (isFree && focused[0]?.isConnected === false) focusNear(focused, near);
      });
      root.addEventListener("focusin", remember);
      observer.observe(root, { childList: true, subtree: true });
      return () => {
        root.removeEventListener("focusin", remember);
        observer.disconnect();
      };
    },
    [near],
  );
}

/** The element and what it is in, innermost first. */
function ancestors(element: Element, root: Element): Element[] {
  const all = [element];
  for (let each = element; each !== root && each.parentElement; all.push(each))
    each = each.parentElement;
  return all;
}

function focusNear(path: readonly Element[], near: readonly string[]): void {
  const message = path.find((each) => each.matches("article"));
  // A message that was scrolled out of the page takes the focus along.
  if (message?.isConnected === false) return;
  const found = message ?? nearest(path, near);
  if (!(found instanceof HTMLElement)) return;
  if (found.matches("h1, h2, h3")) found.tabIndex = -1;
  found.focus({ preventScroll: true });
}

function nearest(path: readonly Element[], near: readonly string[]): Element | null {
  for (const each of path.filter(({ isConnected }) => isConnected)) {
    for (const selector of near) {
      const found = each.querySelector(selector);
      if (found) return found;
    }
  }
  return null;
}
