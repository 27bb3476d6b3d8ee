import { type RefObject, useEffect } from "react";

/**
 * Marks the one message whose toolbar shows with `data-active`: the one that was pointed at or got
 * the focus last. So there are never two, wherever the pointer rests while keys move the focus.
 */
export function useActiveMessage(feed: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const box = feed.current;
    if (!box) return;
    const activate = (next: Element | null) => {
      // A menu or a picker that is open belongs to its message until it is closed.
      if (box.querySelector("[role=toolbar] [aria-expanded=true]")) return;
      const before = box.querySelector("article[data-active]");
      if (before === next) return;
      before?.removeAttribute("data-active");
      next?.setAttribute("data-active", "");
      // The toolbar that is always in sight makes room for another.
      const isElsewhere = next !== null && !next.querySelector("[data-pinned]");
      box.toggleAttribute("data-elsewhere", isElsewhere);
    };
    const enter = ({ target }: Event) => activate(articleOf(target));
    const leave = () => activate(articleOf(document.activeElement));
    const blur = ({ relatedTarget }: FocusEvent) => {
      if (!articleOf(relatedTarget)) activate(box.querySelector("article:hover"));
    };
    box.addEventListener("pointerover", enter);
    box.addEventListener("focusin", enter);
    box.addEventListener("pointerleave", leave);
    box.addEventListener("focusout", blur);
    return () => {
      box.removeEventListener("pointerover", enter);
      box.removeEventListener("focusin", enter);
      box.removeEventListener("pointerleave", leave);
      box.removeEventListener("focusout", blur);
    };

    function articleOf(target: EventTarget | null): Element | null {
      const article = target instanceof Element ? target.closest("article") : null;
      return article && box?.contains(article) ? article : null;
    }
  }, [feed]);
}
