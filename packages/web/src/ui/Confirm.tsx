import type { ReactNode } from "react";
import { Button } from "./Button.tsx";
import { Dialog } from "./Dialog.tsx";

interface ConfirmProps {
  title: string;
  /** The consequence of the action. */
  children: ReactNode;
  /** The labels of the two buttons: cancel and confirm. */
  back: string;
  action: string;
  onBack: () => void;
  onConfirm: () => void;
}

/** Asks before an action that cannot be undone. */
export function Confirm({ title, children, back, action, onBack, onConfirm }: ConfirmProps) {
  return (
    <Dialog title={title} onClose={onBack}>
      <div className="flex min-h-0 flex-col gap-5 overflow-y-auto px-5 pb-5">
        <p className="text-md break-words text-ink-2">{children}</p>
        <div className="flex flex-wrap justify-end gap-2">
          <Button onClick={onBack}>{back}</Button>
          <Button look="danger" onClick={onConfirm}>
            {action}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
