import { useClient } from "@parley/client/react";
import type { AgentProfile } from "@parley/protocol";
import { useAction } from "../lib/action.ts";
import { nameOf } from "../lib/names.ts";
import { Field, TextField } from "../ui/Field.tsx";
import { Form } from "../ui/Form.tsx";
import { isProvided } from "./keys.ts";
import { SaveRow } from "./SaveRow.tsx";

export function ProfileForm({ agent }: { agent: AgentProfile }) {
  const client = useClient();
  const action = useAction();
  const name = nameOf({ ...agent, kind: "agent" });
  return (
    <Form
      error={action.error}
      className="flex flex-col gap-4"
      onSubmit={({ text }) =>
        void action.run(async () => {
          await client.setAgentProfile({
            agent_username: agent.username,
            ...(text("display_name") !== name && { display_name: text("display_name") }),
            ...(!isProvided(agent) && { model: text("model") || null }),
            instructions: text("instructions") || null,
          });
          await client.model.refreshAgents();
        })
      }
    >
      <div className="grid gap-4 sm:grid-cols-2">
        <TextField label="Name" name="display_name" defaultValue={name} required maxLength={64} />
        {isProvided(agent) ? (
          <Field label="Model" hint="This server pays for it and chooses it.">
            {(attributes) => (
              <input {...attributes} readOnly value={agent.model} className="field" />
            )}
          </Field>
        ) : (
          <TextField
            label="Model"
            name="model"
            defaultValue={agent.model}
            maxLength={128}
            hint="Empty means the server’s default."
          />
        )}
      </div>
      <Field
        label="Instructions"
        name="instructions"
        hint="What it should always keep in mind. Only you see them here."
      >
        {(attributes) => (
          <textarea
            {...attributes}
            name="instructions"
            rows={4}
            maxLength={8000}
            defaultValue={agent.instructions ?? ""}
            placeholder="Answer briefly, and say when you are not sure."
            className="field"
          />
        )}
      </Field>
      <SaveRow {...action} />
    </Form>
  );
}
