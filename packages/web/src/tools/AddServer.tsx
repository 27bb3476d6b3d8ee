import { useClient } from "@parley/client/react";
import type { ToolServer } from "@parley/protocol";
import { useAction } from "../lib/action.ts";
import { Dialog } from "../ui/Dialog.tsx";
import { SubmitButtons } from "../ui/DialogButtons.tsx";
import { Form, FormProblem } from "../ui/Form.tsx";
import { explainServerProblem, ServerAddress, ServerName, ServerToken } from "./ServerFields.tsx";

interface AddServerProps {
  onAdded: (server: ToolServer) => void;
  onClose: () => void;
}

/** Adds a tool server. The server is asked for its tools at once. */
export function AddServer({ onAdded, onClose }: AddServerProps) {
  const client = useClient();
  const { busy, error, run } = useAction();
  return (
    <Dialog title="Add a tool server" onClose={onClose}>
      <Form
        error={error}
        explain={explainServerProblem}
        className="flex min-h-0 flex-col gap-4 overflow-y-auto px-5 pt-1 pb-5"
        onSubmit={({ text }) => {
          const token = text("token");
          const input = { name: text("name"), url: text("url"), ...(token !== "" && { token }) };
          void run(async () => onAdded(await client.addToolServer(input)));
        }}
      >
        <ServerName />
        <ServerAddress />
        <ServerToken
          placeholder="None"
          whenEmpty="Leave it empty if the server needs none, or has its own sign-in."
        />
        <FormProblem />
        <SubmitButtons action="Add" busy={busy} onCancel={onClose} />
      </Form>
    </Dialog>
  );
}
