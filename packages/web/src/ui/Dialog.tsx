import { type ReactNode, type RefObject, useEffect, useId, useRef } from "react";
import { useBackCloses } from "../lib/back.ts";
import { returnFocus } from "../lib/focus.ts";
import { IconButton } from "./Button.tsx";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ReactNode;
  /** The title is visible only to screen readers. */
  bare?: boolean;
  wide?: boolean;
  /** Another dialog is above this one, and «back» closes that one. */
  isCovered?: boolean;
}

/** A modal `dialog` element, which keeps the focus inside and closes on Escape. */
export function Dialog({ title, onClose, children, bare, wide, isCovered }: DialogProps) {
  const heading = useId();
  const modal = useModal(onClose, isCovered);
  return (
    <dialog
      {...modal}
      aria-labelledby={heading}
      className={`m-auto max-h-[min(44rem,calc(100dvh-2rem))] w-[calc(100vw-2rem)] overflow-hidden rounded-lg bg-raised text-ink shadow-pop open:flex open:animate-in open:flex-col max-sm:mt-4 ${bare ? "mt-[min(12dvh,6rem)]" : ""} ${wide ? "max-w-xl" : "max-w-md"}`}
    >
      <header
        className={bare ? "sr-only" : "flex items-center justify-between gap-2 py-3 pr-3 pl-5"}
      >
        <h2 id={heading} className="min-w-0 text-lg font-semibold tracking-tight break-words">
          {title}
        </h2>
        {!bare && (
          <IconButton icon="close" label="Close" small className="self-start" onClick={onClose} />
        )}
      </header>
      {children}
    </dialog>
  );
}

const FIELDS = "input:not([type=hidden]), textarea, select";

/** Attributes of a modal `dialog` that closes on Escape, on a click beside it and on «back». */
export function useModal(onClose: () => void, isCovered = false) {
  const ref = useRef<HTMLDialogElement>(null);
  useBackCloses(onClose, !isCovered);
  useEffect(() => {
    const opener = document.activeElement;
    const dialog = ref.current;
    dialog?.showModal();
    focusFirst(ref);
    return () => {
      dialog?.close();
      returnFocus(opener);
    };
  }, []);
  return {
    ref,
    onCancel: (event: { preventDefault(): void }) => {
      event.preventDefault();
      onClose();
    },
    onClick: (event: { target: EventTarget }) => {
      if (event.target === ref.current) onClose();
    },
  };
}

/** Focuses the first field or the first answer. The browser would focus «Close», which comes first. */
function focusFirst(dialog: RefObject<HTMLDialogElement | null>): void {
  const inside = (selector: string) => dialog.current?.querySelector<HTMLElement>(selector);
  const first =
    inside("[data-autofocus]") ??
    inside(FIELDS) ??
    inside(":scope > header ~ * button:not(:disabled)");
  first?.focus({ preventScroll: true });
}
