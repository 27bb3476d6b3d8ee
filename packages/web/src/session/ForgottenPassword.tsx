import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { DialogButtons } from "../ui/DialogButtons.tsx";

/** Explains how somebody who forgot their password gets a new one: an operator makes a link. */
export default function ForgottenPassword({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Forgot your password?" onClose={onClose}>
      <div className="flex min-h-0 flex-col gap-4 overflow-y-auto px-5 pb-5 text-md text-ink-2">
        <p>
          Ask the people who run this service for a link. With it you set a new password: once,
          within a day. Your conversations stay as they are.
        </p>
        <p>
          If you run it yourself, make the link on the server, with your username:
          <code className="mt-1.5 block rounded-md border border-line bg-canvas px-3 py-2 font-mono text-sm break-words text-ink">
            parley users reset-link &lt;username&gt;
          </code>
        </p>
        <DialogButtons>
          <Button look="primary" onClick={onClose}>
            OK
          </Button>
        </DialogButtons>
      </div>
    </Dialog>
  );
}
