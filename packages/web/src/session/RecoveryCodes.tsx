import { copyText } from "../lib/copy.ts";
import { showError } from "../lib/errors.ts";
import { focusOnMount } from "../lib/focus.ts";
import { toast } from "../lib/toasts.ts";
import { Button } from "../ui/Button.tsx";
import { DialogButtons } from "../ui/DialogButtons.tsx";

/** New recovery codes, which are shown once: the content of a dialog. */
export function RecoveryCodes({
  codes,
  onClose,
}: {
  codes: readonly string[];
  onClose: () => void;
}) {
  const copy = () => copyText(codes.join("\n")).then(() => toast("Copied"), showError);
  return (
    <div className="flex min-h-0 flex-col gap-4 overflow-y-auto px-5 pb-5">
      <p className="text-md text-ink-2">
        Store these codes in a safe place: they are shown only now. If you lose your phone, each of
        them signs you in once.
      </p>
      <ul className="grid grid-cols-1 gap-x-4 gap-y-1 rounded-md border border-line p-3 font-mono text-sm min-[26rem]:grid-cols-2">
        {codes.map((code) => (
          <li key={code}>{code}</li>
        ))}
      </ul>
      <DialogButtons>
        <Button ref={focusOnMount} icon="copy" onClick={copy}>
          Copy
        </Button>
        <Button look="primary" onClick={onClose}>
          I have stored them
        </Button>
      </DialogButtons>
    </div>
  );
}
