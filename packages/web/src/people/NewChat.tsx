import { useClient } from "@parley/client/react";
import type { Account } from "@parley/protocol";
import { useState } from "react";
import { useAction } from "../lib/action.ts";
import { useSelf } from "../lib/me.ts";
import { isMyAgent } from "../lib/names.ts";
import { chatPath, navigate } from "../lib/router.ts";
import { Button } from "../ui/Button.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { TextField } from "../ui/Field.tsx";
import { Form, FormProblem } from "../ui/Form.tsx";
import { useUnsavedChanges } from "../ui/unsaved-changes.tsx";
import { PeoplePicker } from "./PeoplePicker.tsx";

/**
 * Starts a direct conversation with one person, another one with one's own agent, or a group with
 * several people or a title.
 */
export default function NewChat({ onClose }: { onClose: () => void }) {
  const client = useClient();
  const { busy, error, run } = useAction();
  const [chosen, setChosen] = useState<Account[]>([]);
  const [title, setTitle] = useState("");
  const me = useSelf();
  const { form, question, close } = useUnsavedChanges(onClose);
  const [only] = chosen.length === 1 ? chosen : [];
  const isAgents = only !== undefined && isMyAgent(only, me);
  const group = !isAgents && (chosen.length > 1 || title.trim() !== "");
  const start = () =>
    void run(async () => {
      const usernames = chosen.map(({ username }) => username);
      const named = title.trim() === "" ? {} : { title: title.trim() };
      const another = isAgents ? ({ kind: "direct", new: true } as const) : {};
      const chat = await client.startChat({ usernames, ...named, ...another });
      onClose();
      navigate(chatPath(chat.id));
    });
  return (
    <Dialog title="New conversation" isCovered={question !== null} onClose={close}>
      <Form ref={form} error={error} onSubmit={start} className="flex min-h-0 flex-col">
        {chosen.map(({ username }) => (
          <input key={username} type="hidden" name="with" value={username} />
        ))}
        <div className="flex min-h-0 flex-col gap-4 overflow-y-auto px-5 pb-4">
          <PeoplePicker chosen={chosen} onChange={setChosen} />
          <TextField
            label="Title"
            name="title"
            hint={hintFor(isAgents, group)}
            value={title}
            maxLength={128}
            onChange={(event) => setTitle(event.target.value)}
          />
          <FormProblem />
        </div>
        <div className="flex flex-col px-5 pt-1 pb-5">
          <Button type="submit" look="primary" busy={busy} disabled={chosen.length === 0}>
            {isAgents ? "Start new chat" : group ? "Create group" : "Start conversation"}
          </Button>
        </div>
      </Form>
      {question}
    </Dialog>
  );
}

function hintFor(isAgents: boolean, isGroup: boolean): string {
  if (isAgents) return "Optional. The agent knows nothing of your other chats with it.";
  return isGroup ? "Everyone in the group sees it." : "Optional: a title makes it a group.";
}
