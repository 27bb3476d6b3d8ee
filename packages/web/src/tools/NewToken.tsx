import { useClient } from "@parley/client/react";
import { useState } from "react";
import { useAction } from "../lib/action.ts";
import { CodeBlock } from "../markdown/CodeBlock.tsx";
import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { DialogButtons, SubmitButtons } from "../ui/DialogButtons.tsx";
import { TextField } from "../ui/Field.tsx";
import { Form, FormProblem } from "../ui/Form.tsx";

interface NewTokenProps {
  username: string;
  onCreated: () => void;
  onClose: () => void;
}

/** Creates a token for the program of an external agent, and shows it once, with how to use it. */
export function NewToken({ username, onCreated, onClose }: NewTokenProps) {
  const client = useClient();
  const { busy, error, run } = useAction();
  const [token, setToken] = useState<string | null>(null);
  const create = (name: string) =>
    run(async () => {
      const input = { agent_username: username, ...(name !== "" && { name }) };
      setToken((await client.createAgentToken(input)).token);
      onCreated();
    });
  return (
    <Dialog title={token === null ? "New token" : "Your new token"} wide onClose={onClose}>
      {token === null ? (
        <Form
          error={error}
          className="flex flex-col gap-4 px-5 pt-1 pb-5"
          onSubmit={({ text }) => void create(text("name"))}
        >
          <TextField
            label="Name"
            name="name"
            maxLength={64}
            autoComplete="off"
            placeholder="My laptop"
            hint="Optional. It tells this token from others."
          />
          <FormProblem />
          <SubmitButtons action="Create" busy={busy} onCancel={onClose} />
        </Form>
      ) : (
        <div className="flex min-h-0 flex-col gap-4 overflow-y-auto px-5 pt-1 pb-5">
          <p className="text-base text-ink-2">
            Copy it now: it is not shown again. Whoever has it can answer as @{username}.
          </p>
          <CodeBlock code={token} language="token" />
          <p className="text-base text-ink-2">
            A program that answers, with the SDK and the token in <code>AGENT_TOKEN</code>:
          </p>
          <CodeBlock code={program} language="js" />
          <DialogButtons>
            <Button look="primary" data-autofocus onClick={onClose}>
              Done
            </Button>
          </DialogButtons>
        </div>
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
