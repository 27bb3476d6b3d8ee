import {
  type ReactNode,
  type SyntheticEvent,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
} from "react";
import { useBackCloses } from "../lib/back.ts";
import { focusField, returnFocus } from "../lib/focus.ts";
import { IconButton } from "./Button.tsx";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ReactNode;
  /** The name of the field to begin at; otherwise it is the first one. */
  field?: string | null;
  /** The title is visible only to screen readers. */
  bare?: boolean;
  wide?: boolean;
  /** Another dialog is above this one, and «back» closes that one. */
  isCovered?: boolean;
}

/** A modal `dialog` element, which keeps the focus inside and closes on Escape. */
export function Dialog(props: DialogProps) {
  const { title, onClose, children, field, bare, wide, isCovered } = props;
  const heading = useId();
  const modal = useModal(onClose, isCovered, field);
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

const openModals: HTMLDialogElement[] = [];

/** Attributes of a modal `dialog` that closes on Escape, on a click beside it and on «back». */
export function useModal(onClose: () => void, isCovered = false, field: string | null = null) {
  const ref = useRef<HTMLDialogElement>(null);
  const latestOnClose = useRef(onClose);
  latestOnClose.current = onClose;
  const first = useRef(field);
  useBackCloses(onClose, !isCovered);
  const end = useRef(() => {});
  useEffect(() => {
    const opener = document.activeElement;
    const dialog = ref.current;
    if (!dialog) return;
    open(dialog);
    if (first.current !== null) focusField(dialog.querySelector(`[name="${first.current}"]`));
    openModals.push(dialog);
    // Browsers let a page prevent `cancel` only once until the person does something else.
    const closeOnEscape = (event: KeyboardEvent) => {
      const isMine = event.key === "Escape" && openModals.at(-1) === dialog;
      if (!isMine || event.defaultPrevented || event.isComposing) return;
      event.preventDefault();
      latestOnClose.current();
    };
    addEventListener("keydown", closeOnEscape);
    end.current = () => {
      removeEventListener("keydown", closeOnEscape);
      openModals.splice(openModals.indexOf(dialog), 1);
      dialog.close();
      returnFocus(opener);
    };
  }, []);
  // Not the end of that effect, which comes after the dialog is gone, and with it the focus.
  useLayoutEffect(() => () => end.current(), []);
  return {
    ref,
    onCancel: (event: SyntheticEvent) => {
      event.preventDefault();
      if (event.cancelable) onClose();
    },
    // The browser closed it without asking: `onClose` decides whether it stays open.
    onClose: () => {
      if (!ref.current || ref.current.open) return;
      open(ref.current);
      onClose();
    },
    onClick: (event: { target: EventTarget }) => {
      if (event.target === ref.current) onClose();
    },
  };
}

function open(dialog: HTMLDialogElement): void {
  dialog.showModal();
  focusFirst(dialog);
}

/** Focuses the first field or the first answer. The browser would focus «Close», which comes first. */
function focusFirst(dialog: HTMLDialogElement): void {
  const inside = (selector: string) => dialog.querySelector<HTMLElement>(selector);
  const first =
    inside("[data-autofocus]") ??
    inside(FIELDS) ??
    inside(":scope > header ~ * button:not(:disabled)");
  first?.focus({ preventScroll: true });
}
