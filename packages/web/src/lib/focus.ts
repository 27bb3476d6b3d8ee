/** Returns the focus to an element; to its message if the element, such as a toolbar, is hidden. */
export function returnFocus(to: Element | null): void {
  if (!(to instanceof HTMLElement)) return;
  to.focus({ preventScroll: true });
  if (document.activeElement !== to) to.closest("article")?.focus({ preventScroll: true });
}

/** A `ref` that focuses an element when it appears. Browsers follow `autofocus` only while a page loads. */
export const focusOnMount = (element: HTMLElement | null): void => element?.focus();

/** Scrolls to a field and focuses it. */
export function focusField(field: HTMLElement | null): void {
  field?.scrollIntoView({ block: "center" });
  field?.focus({ preventScroll: true });
}
