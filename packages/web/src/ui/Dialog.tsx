import { type ReactNode, useEffect, useId, useRef } from "react";
import { returnFocus } from "../lib/focus.ts";
import { IconButton } from "./Button.tsx";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ReactNode;
  /** The title is for screen readers alone. */
  bare?: boolean;
  wide?: boolean;
}

/** A modal window: the platform's own, which keeps the focus inside and closes on Escape. */
export function Dialog({ title, onClose, children, bare, wide }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const dialog = ref.current;
    const opener = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      returnFocus(opener);
    };
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: a click beside the window; Escape does the same
    <dialog
      ref={ref}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === ref.current && onClose()}
      className={`m-auto max-h-[min(44rem,calc(100dvh-2rem))] w-[calc(100vw-2rem)] overflow-hidden rounded-lg bg-raised text-ink shadow-pop open:flex open:animate-in open:flex-col max-sm:mt-4 ${bare ? "mt-[12dvh]" : ""} ${wide ? "max-w-xl" : "max-w-md"}`}
    >
      <header className={bare ? "sr-only" : "flex items-center justify-between py-3 pr-3 pl-5"}>
        <h2 id={heading} className="text-lg font-semibold tracking-tight">
          {title}
        </h2>
        {!bare && <IconButton icon="close" label="Close" small onClick={onClose} />}
      </header>
      {children}
    </dialog>
  );
}
