/** Gives the focus back; to the message, where a tool of one has gone out of sight with the focus. */
export function returnFocus(to: Element | null): void {
  if (!(to instanceof HTMLElement)) return;
  to.focus({ preventScroll: true });
  if (document.activeElement !== to) to.closest("article")?.focus({ preventScroll: true });
}

/** Puts somebody who has followed a link right to the field that it is about. */
export function focusField(field: HTMLElement | null): void {
  field?.scrollIntoView({ block: "center" });
  field?.focus({ preventScroll: true });
}
