import { type RefObject, useEffect } from "react";

/**
 * Sets `data-active` on the message whose toolbar is visible: the one that was pointed at or focused
 * last. Only one message has it, wherever the pointer is while keys move the focus.
 */
export function useActiveMessage(feed: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const box = feed.current;
    if (!box) return;
    const activate = (next: Element | null) => {
      // While a menu or picker of a toolbar is open, its message stays active.
      if (box.querySelector("[role=toolbar] [aria-expanded=true]")) return;
      // Hides the toolbar of the latest answer, unless that answer is the active message.
      box.toggleAttribute("data-has-active", next !== null);
      const before = box.querySelector("article[data-active]");
      if (before === next) return;
      before?.removeAttribute("data-active");
      next?.setAttribute("data-active", "");
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
