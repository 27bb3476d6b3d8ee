import type { ReactNode } from "react";
import { Button } from "./Button.tsx";

/** The row of buttons at the end of a dialog. */
export const DialogButtons = ({ children }: { children: ReactNode }) => (
  <div className="flex flex-wrap justify-end gap-2">{children}</div>
);

interface SubmitButtonsProps {
  /** The label of the button that submits. */
  action: string;
  look?: "danger" | "primary";
  busy: boolean;
  onCancel: () => void;
}

/** «Cancel», and the button that submits the form of a dialog. */
export const SubmitButtons = ({ action, look = "primary", busy, onCancel }: SubmitButtonsProps) => (
  <DialogButtons>
    <Button onClick={onCancel}>Cancel</Button>
    <Button type="submit" look={look} busy={busy}>
      {action}
    </Button>
  </DialogButtons>
);
