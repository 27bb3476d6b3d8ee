import { useEffect } from "react";
import { dismissToast, toasts } from "../lib/toasts.ts";
import { IconButton } from "./Button.tsx";

/**
 * Beside the content where there is room: above the list of conversations. On a phone they cover what is
 * below them, so they go as soon as the person touches the page.
 */
export function Toasts() {
  const shown = toasts.use();
  const isShown = shown.length > 0;
  useEffect(() => {
    if (!isShown) return;
    const handleTouch = ({ pointerType }: PointerEvent) => {
      if (pointerType === "touch") toasts.set([]);
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
          <IconButton icon="close" label="Dismiss" small onClick={() => dismissToast(id)} />
        </div>
      ))}
    </div>
  );
}
