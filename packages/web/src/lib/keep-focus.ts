import { type RefObject, useEffect } from "react";

/**
 * When the focused element is removed, such as the row of something that was deleted, focuses the
 * heading of what surrounds it. Otherwise the browser would move the focus to the top of the document.
 */
export function useFocusKept(container: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const root = container.current;
    if (!root) return;
    let focused: Element[] = [];
    const remember = ({ target }: FocusEvent) => {
      focused = target instanceof Element ? ancestors(target, root) : [];
    };
    const observer = new MutationObserver(() => {
      const isFree = document.activeElement === document.body;
      if (isFree && focused[0]?.isConnected === false) focusHeading(focused);
    });
    root.addEventListener("focusin", remember);
    observer.observe(root, { childList: true, subtree: true });
    return () => {
      root.removeEventListener("focusin", remember);
      observer.disconnect();
    };
  }, [container]);
}

/** The element and what it is in, innermost first. */
function ancestors(element: Element, root: Element): Element[] {
  const all = [element];
  for (let each = element; each !== root && each.parentElement; all.push(each))
    each = each.parentElement;
  return all;
}

function focusHeading(path: readonly Element[]): void {
  for (const each of path.filter(({ isConnected }) => isConnected)) {
    const heading = each.querySelector<HTMLElement>("h1, h2, h3");
    if (!heading) continue;
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
    return;
  }
}
