import type { ReactNode } from "react";
import { useModal } from "./Dialog.tsx";
import { Icon, type IconName } from "./Icon.tsx";

interface SheetProps {
  /** Its name for screen readers. */
  label: string;
  onClose: () => void;
  children: ReactNode;
}

/**
 * A menu on a phone: rises from the lower edge and contains `SheetRow`s. Closes on «back», on Escape
 * and on a touch beside it.
 */
export function Sheet({ label, onClose, children }: SheetProps) {
  const modal = useModal(onClose);
  return (
    <dialog
      {...modal}
      aria-label={label}
      className="mx-auto mt-auto mb-0 max-h-[85dvh] w-full max-w-lg overflow-y-auto rounded-t-xl bg-raised text-ink shadow-pop open:animate-sheet"
    >
      <div className="px-2 pt-2 pb-[max(0.5rem,env(safe-area-inset-bottom))]">
        <div aria-hidden="true" className="mx-auto mb-2 h-1 w-9 rounded-full bg-edge opacity-40" />
        {children}
      </div>
    </dialog>
  );
}

interface SheetRowProps {
  icon: IconName;
  label: string;
  danger?: boolean;
  /** Inside an element with the role `menu`. */
  role?: "menuitem";
  onSelect: () => void;
}

/** A command of a sheet. */
export function SheetRow({ icon, label, danger, role, onSelect }: SheetRowProps) {
  return (
    <button
      type="button"
      role={role}
      onClick={onSelect}
      className={`flex min-h-12 w-full items-center gap-3.5 rounded-md px-3 py-2 text-left text-[1rem] active:bg-hover focus-visible:outline-offset-[-2px] ${danger ? "text-danger" : ""}`}
    >
      <Icon name={icon} size={20} />
      <span className="min-w-0 break-words">{label}</span>
    </button>
  );
}
