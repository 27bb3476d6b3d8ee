import { type ReactNode, useState } from "react";
import { CodeBlock } from "../markdown/CodeBlock.tsx";
import { Button } from "../ui/Button.tsx";
import { Confirm } from "../ui/Confirm.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { DialogButtons } from "../ui/DialogButtons.tsx";

interface ShownOnceProps {
  title: string;
  /** What the secret is, in one word: «token». */
  what: string;
  secret: string;
  /** What the person has to know before they copy it. */
  note: ReactNode;
  /** What they may do with it next. */
  children?: ReactNode;
  onClose: () => void;
}

/** A new secret, which is shown once. Escape, «back» and a click beside it ask until it is copied. */
export function ShownOnce({ title, what, secret, note, children, onClose }: ShownOnceProps) {
  const [isCopied, setCopied] = useState(false);
  const [isAsking, setAsking] = useState(false);
  const leave = () => (isCopied ? onClose() : setAsking(true));
  return (
    <Dialog title={title} wide isCovered={isAsking} onClose={leave}>
      <div className="flex min-h-0 flex-col gap-4 overflow-y-auto px-5 pt-1 pb-5">
        <p className="text-base text-ink-2">{note}</p>
        <div onCopy={() => setCopied(true)}>
          <CodeBlock code={secret} language={what} onCopied={() => setCopied(true)} />
        </div>
        {children}
        <DialogButtons>
          <Button look="primary" onClick={onClose}>
            Done
          </Button>
        </DialogButtons>
      </div>
      {isAsking && (
        <Confirm
          title={`Close without the ${what}?`}
          back={`Show the ${what}`}
          action="Close"
          onBack={() => setAsking(false)}
          onConfirm={onClose}
        >
          You have not copied it, and it is not shown again.
        </Confirm>
      )}
    </Dialog>
  );
}
