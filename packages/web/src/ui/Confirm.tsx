import type { ReactNode } from "react";
import { Button } from "./Button.tsx";
import { Dialog } from "./Dialog.tsx";
import { DialogButtons } from "./DialogButtons.tsx";

interface ConfirmProps {
  title: string;
  /** The consequence of the action. */
  children: ReactNode;
  /** A choice that the person has, such as a checkbox. */
  option?: ReactNode;
  /** The labels of the two buttons: cancel and confirm. */
  back: string;
  action: string;
  /** `primary` for an action that takes nothing from anybody. */
  look?: "danger" | "primary";
  onBack: () => void;
  onConfirm: () => void;
}

/** Asks before an action that cannot be undone, or that concerns somebody else. */
export function Confirm(props: ConfirmProps) {
  const { title, children, option, back, action, look = "danger", onBack, onConfirm } = props;
  return (
    <Dialog title={title} onClose={onBack}>
      <div className="flex min-h-0 flex-col gap-5 overflow-y-auto px-5 pb-5">
        <p className="text-md break-words text-ink-2">{children}</p>
        {option}
        <DialogButtons>
          <Button data-autofocus onClick={onBack}>
            {back}
          </Button>
          <Button look={look} onClick={onConfirm}>
            {action}
          </Button>
        </DialogButtons>
      </div>
    </Dialog>
  );
}
