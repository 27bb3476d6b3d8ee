import { useClient } from "@parley/client/react";
import type { AgentLimits, AgentProfile, OutputOf } from "@parley/protocol";
import { type ReactNode, useRef, useState } from "react";
import { useAction } from "../lib/action.ts";
import { useSelf } from "../lib/me.ts";
import { nameOf } from "../lib/names.ts";
import type { AgentField } from "../lib/router.ts";
import { toast } from "../lib/toasts.ts";
import { Button } from "../ui/Button.tsx";
import { Choice } from "../ui/Choice.tsx";
import { Dialog } from "../ui/Dialog.tsx";
import { TextField } from "../ui/Field.tsx";
import { Form, FormProblem, type FormValues } from "../ui/Form.tsx";
import { useUnsavedChanges } from "../ui/unsaved-changes.tsx";
import { DeleteAgent } from "./DeleteAgent.tsx";
import { InstructionsField } from "./InstructionsField.tsx";
import { isProvided } from "./keys.ts";
import { LimitFields, limitsIn } from "./LimitFields.tsx";
import { ModelFields } from "./ModelFields.tsx";
import { NameFields } from "./NameFields.tsx";

/** The limits of a new agent, as the server sets them. */
const NEW_LIMITS: AgentLimits = {
  spenders: "participants",
  daily_tokens: 2_000_000,
  chat_daily_tokens: null,
  turns_per_minute: 60,
  waiting_turns: 16,
};

interface AgentEditorProps {
  /** Null: a new agent. */
  agent: AgentProfile | null;
  /** The field to begin at. */
  field?: AgentField | null;
  /** A new agent exists, with this username. */
  onCreated?: (username: string) => void;
  onClose: () => void;
}

/** Creates an agent, or changes everything about one but its key. */
export default function AgentEditor(props: AgentEditorProps) {
  const { field = null, onCreated, onClose } = props;
  // As it was when the editor was opened: changes of other clients do not change what is being edited.
  const [agent] = useState(props.agent);
  const action = useAction();
  const save = useSave(agent, onCreated);
  const me = useSelf();
  const { form, question, close } = useUnsavedChanges(onClose);
  const [kind, setKind] = useState(agent?.kind ?? "model");
  const title = agent ? `Edit ${nameOf({ ...agent, kind: "agent" })}` : "New agent";
  return (
    <Dialog title={title} field={field} wide isCovered={question !== null} onClose={close}>
      <Form
        ref={form}
        error={action.error}
        explain={takenName}
        className="flex min-h-0 flex-col"
        onSubmit={async (values) => {
          if (await action.run(() => save(values, kind))) onClose();
        }}
      >
        <div className="relative flex min-h-0 flex-col gap-7 overflow-y-auto px-5 pt-1 pb-6">
          {!agent && <KindChoice value={kind} onChange={setKind} />}
          {agent ? <DisplayName agent={agent} /> : <NameFields owner={me.username} />}
          {kind === "model" && <ModelFields agent={agent} />}
          <InstructionsField text={agent?.instructions ?? ""} />
          <Part title="Who may ask it, and limits">
            <LimitFields limits={agent?.limits ?? NEW_LIMITS} />
          </Part>
        </div>
        <footer className="flex flex-wrap items-center gap-2 border-t border-line px-5 py-3">
          {agent && agent.name !== agent.provider && (
            <DeleteAgent agent={agent} onDeleted={onClose} />
          )}
          <div className="ml-auto flex gap-2">
            <Button onClick={close}>Cancel</Button>
            <Button type="submit" look="primary" busy={action.busy}>
              {agent ? "Save" : "Create agent"}
            </Button>
          </div>
          <div className="basis-full empty:hidden">
            <FormProblem />
          </div>
        </footer>
      </Form>
      {question}
    </Dialog>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="flex flex-col gap-4 border-t border-line pt-5">
      <h3 className="text-base font-semibold">{title}</h3>
      {children}
    </section>
  );
}

const kinds = [
  { value: "model", label: "A model", hint: "A model of one of the providers answers." },
  {
    value: "external",
    label: "Your own program",
    hint: "A program of yours connects and answers.",
  },
] as const;

type Kind = AgentProfile["kind"];

const KindChoice = ({ value, onChange }: { value: Kind; onChange: (kind: Kind) => void }) => (
  <Choice label="What answers" value={value} options={kinds} onChange={onChange} />
);

const DisplayName = ({ agent }: { agent: AgentProfile }) => (
  <TextField
    label="Name"
    name="display_name"
    hint={`People mention it as @${agent.username}.`}
    defaultValue={nameOf({ ...agent, kind: "agent" })}
    required
    maxLength={64}
  />
);

/** The server names no field for a name that is taken. */
const takenName = (error: unknown): Record<string, string> =>
  error instanceof Error && "code" in error && error.code === "conflict"
    ? { name: "You have used this handle before. Choose another one." }
    : {};

/** Saves what has changed. */
function useSave(agent: AgentProfile | null, onCreated: AgentEditorProps["onCreated"]) {
  const client = useClient();
  /** The new agent, if it was created and its limits could not be saved. */
  const created = useRef<OutputOf<"createAgent"> | null>(null);
  return async (values: FormValues, kind: Kind): Promise<void> => {
    const { text } = values;
    const isModel = kind === "model";
    const given = {
      ...(isModel && { model: text("model") || null }),
      instructions: text("instructions") || null,
    };
    const limits = limitsIn(values);
    if (!agent) {
      created.current ??= await client.createAgent({
        name: text("name"),
        kind,
        ...(isModel && { provider: text("provider") }),
        display_name: text("display_name"),
        ...given,
      });
      const { username, display_name } = created.current;
      if (!isSame(limits, NEW_LIMITS)) {
        await client.setAgentLimits({ agent_username: username, ...limits });
      }
      onCreated?.(username);
      toast(`${display_name} is created.`);
      return;
    }
    const agent_username = agent.username;
    const name = nameOf({ ...agent, kind: "agent" });
    const { model, ...rest } = given;
    const provider = text("provider") || agent.provider;
    // The field is missing, and the owner's choice stays.
    const isChosenByServer = provider === agent.provider && isProvided(agent);
    await client.updateAgent({
      agent_username,
      ...rest,
      ...(model !== undefined && model !== agent.model && !isChosenByServer && { model }),
      ...(text("display_name") !== name && { display_name: text("display_name") }),
      ...(provider !== null && { provider }),
    });
    if (!isSame(limits, agent.limits)) await client.setAgentLimits({ agent_username, ...limits });
  };
}

const isSame = (one: AgentLimits, other: AgentLimits) =>
  Object.keys(one).every(
    (name) => one[name as keyof AgentLimits] === other[name as keyof AgentLimits],
  );
