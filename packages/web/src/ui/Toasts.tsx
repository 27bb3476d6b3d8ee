import { useEffect, useSyncExternalStore } from "react";
import { IconButton } from "./Button.tsx";

interface Toast {
  id: number;
  text: string;
  tone: "plain" | "danger";
}

const SHOWN_MS = 6000;
let toasts: readonly Toast[] = [];
let lastId = 0;
const listeners = new Set<() => void>();

function set(next: readonly Toast[]): void {
  toasts = next;
  for (const listener of listeners) listener();
}

const dismiss = (id: number) => set(toasts.filter((toast) => toast.id !== id));

/** Shows a short message for a few seconds, whatever page is open. */
export function toast(text: string, tone: Toast["tone"] = "plain"): void {
  const id = ++lastId;
  set([...toasts.slice(-2), { id, text, tone }]);
  setTimeout(() => dismiss(id), SHOWN_MS);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * Beside the content where there is room: above the list of conversations. On a phone they cover what is
 * below them, so they go as soon as the person touches the page.
 */
export function Toasts() {
  const shown = useSyncExternalStore(subscribe, () => toasts);
  const isShown = shown.length > 0;
  useEffect(() => {
    if (!isShown) return;
    const handleTouch = ({ pointerType }: PointerEvent) => {
      if (pointerType === "touch") set([]);
    };
    addEventListener("pointerdown", handleTouch);
    return () => removeEventListener("pointerdown", handleTouch);
  }, [isShown]);
  return (
    <div
      role="status"
      className="pointer-events-none fixed inset-x-0 top-22 z-50 flex flex-col items-center gap-2 px-4 md:top-auto md:right-auto md:bottom-17 md:w-76 md:items-start"
    >
      {shown.map(({ id, text, tone }) => (
        <div
          key={id}
          className={`pointer-events-auto flex max-w-md animate-in items-center gap-2 rounded-lg bg-raised py-1.5 pr-1.5 pl-4 text-base shadow-pop ${tone === "danger" ? "text-danger" : ""}`}
        >
          {text}
          <IconButton icon="close" label="Dismiss" small onClick={() => dismiss(id)} />
        </div>
      ))}
    </div>
  );
}
