import { sharedValue } from "./shared-value.ts";

interface Toast {
  id: number;
  text: string;
  tone: "plain" | "danger";
}

const SHOWN_MS = 6000;
let lastId = 0;

export const toasts = sharedValue<readonly Toast[]>([]);

export const dismissToast = (id: number) =>
  toasts.set(toasts.get().filter((each) => each.id !== id));

/** Shows a short message for a few seconds, whatever page is open. */
export function toast(text: string, tone: Toast["tone"] = "plain"): void {
  const id = ++lastId;
  toasts.set([...toasts.get().slice(-2), { id, text, tone }]);
  setTimeout(() => dismissToast(id), SHOWN_MS);
}
