import { useClient } from "@parley/client/react";
import type { ToolServer } from "@parley/protocol";
import { useAction } from "../lib/action.ts";
import { Dialog } from "../ui/Dialog.tsx";
import { SubmitButtons } from "../ui/DialogButtons.tsx";
import { Form, FormProblem } from "../ui/Form.tsx";
import { explainServerProblem, ServerAddress, ServerName, ServerToken } from "./ServerFields.tsx";

interface ChangeServerProps {
  server: ToolServer;
  onChanged: (server: ToolServer) => void;
  onClose: () => void;
}

/** Changes the name, the address or the token of a tool server. Agents keep what they may use of it. */
export function ChangeServer({ server: { id, name, url }, onChanged, onClose }: ChangeServerProps) {
  const client = useClient();
  const { busy, error, run } = useAction();
  return (
    <Dialog title={`Change ${name}`} onClose={onClose}>
      <Form
        error={error}
        explain={explainServerProblem}
        className="flex min-h-0 flex-col gap-4 overflow-y-auto px-5 pt-1 pb-5"
        onSubmit={({ text }) => {
          const [address, token] = [text("url"), text("token")];
          const changes = {
            name: text("name"),
            ...(address !== url && { url: address }),
            ...(token !== "" && { token }),
          };
          void run(async () =>
            onChanged(await client.updateToolServer({ server_id: id, ...changes })),
          );
        }}
      >
        <ServerName initial={name} />
        <ServerAddress initial={url ?? ""} />
        <ServerToken
          placeholder="Unchanged"
          whenEmpty="Leave it empty to keep it. Another address needs it again, or another sign-in."
        />
        <FormProblem />
        <SubmitButtons action="Save" busy={busy} onCancel={onClose} />
      </Form>
    </Dialog>
  );
}
