import { useState } from "react";
import { CodeBlock } from "../markdown/CodeBlock.tsx";
import { Button } from "../ui/Button.tsx";
import { Confirm } from "../ui/Confirm.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { DialogButtons } from "../ui/DialogButtons.tsx";

interface ShownTokenProps {
  username: string;
  token: string;
  onClose: () => void;
}

/** A new token, which is shown once. Escape, «back» and a click beside it ask until it is copied. */
export function ShownToken({ username, token, onClose }: ShownTokenProps) {
  const [isCopied, setCopied] = useState(false);
  const [isAsking, setAsking] = useState(false);
  const leave = () => (isCopied ? onClose() : setAsking(true));
  return (
    <Dialog title="Your new token" wide isCovered={isAsking} onClose={leave}>
      <div className="flex min-h-0 flex-col gap-4 overflow-y-auto px-5 pt-1 pb-5">
        <p className="text-base text-ink-2">
          Copy it now: it is not shown again. Whoever has it can answer as @{username}.
        </p>
        <div onCopy={() => setCopied(true)}>
          <CodeBlock code={token} language="token" onCopied={() => setCopied(true)} />
        </div>
        <p className="text-base text-ink-2">
          A program that answers, with the SDK and the token in <code>AGENT_TOKEN</code>:
        </p>
        <CodeBlock code={program} language="js" />
        <DialogButtons>
          <Button look="primary" onClick={onClose}>
            Done
          </Button>
        </DialogButtons>
      </div>
      {isAsking && (
        <Confirm
          title="Close without the token?"
          back="Show the token"
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

const program = `import { createAgent } from "@parley/client";

createAgent({
  url: "${location.origin}",
  token: process.env.AGENT_TOKEN,
  onTurn: async (turn) => {
    await turn.status("thinking");
    turn.write(\`You wrote: \${turn.message.content}\`);
  },
});`;
