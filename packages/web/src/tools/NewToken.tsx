import { useClient } from "@parley/client/react";
import { useState } from "react";
import { useAction } from "../lib/action.ts";
import { Dialog } from "../ui/Dialog.tsx";
import { SubmitButtons } from "../ui/DialogButtons.tsx";
import { TextField } from "../ui/Field.tsx";
import { Form, FormProblem } from "../ui/Form.tsx";
import { ShownToken } from "./ShownToken.tsx";

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
  return token === null ? (
    <Dialog title="New token" wide onClose={onClose}>
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
    </Dialog>
  ) : (
    <ShownToken username={username} token={token} onClose={onClose} />
  );
}
