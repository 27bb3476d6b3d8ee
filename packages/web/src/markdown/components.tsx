import { useClient } from "@parley/client/react";
import type { FormBlock } from "@parley/protocol/markup";
import { use, useState } from "react";
import { fieldErrorsOf, useAction, wordsFor } from "../lib/action.ts";
import { Button } from "../ui/Button.tsx";
import { Field, TextField } from "../ui/Field.tsx";
import { Form, FormProblem } from "../ui/Form.tsx";
import { Icon } from "../ui/Icon.tsx";
import { ActionTarget } from "./action-target.ts";
import { useFormDraft } from "./form-draft.ts";
import { Markdown } from "./Markdown.tsx";

type Values = Record<string, string | number>;

function useComponentAction() {
  const client = useClient();
  const target = use(ActionTarget);
  const { busy, error, run } = useAction();
  const [done, setDone] = useState<string | null>(null);
  const submit = async (action: string, fields?: Values) => {
    if (!target) return false;
    const call = { chat_id: target.chatId, message_id: target.messageId, action };
    const sent = await run(() => client.sendComponentAction(fields ? { ...call, fields } : call));
    if (sent) setDone(action);
    return sent;
  };
  return { enabled: target !== null, busy, error, done, submit };
}

function Outcome({ error, done }: { error: unknown; done: string | null }) {
  if (error) return <p className="mt-1 text-sm text-danger">{wordsFor(error)}</p>;
  if (done === null) return null;
  return (
    <p className="mt-1 flex items-center gap-1 text-sm text-good">
      <Icon name="check" size={14} />
      {/^(cancel|dismiss):/.test(done) ? "Dismissed" : "Sent"}
    </p>
  );
}

interface ActionButtonProps {
  action: string;
  label: string;
  first: boolean;
}

/** The first of a row is what the author proposes. */
export function ActionButton({ action, label, first }: ActionButtonProps) {
  const { enabled, busy, error, done, submit } = useComponentAction();
  return (
    <span className="inline-flex max-w-full flex-col">
      <Button
        size="small"
        look={first ? "primary" : "secondary"}
        busy={busy}
        disabled={!enabled}
        onClick={() => submit(action)}
        className="max-w-full"
      >
        <span className="truncate">{label}</span>
      </Button>
      <span aria-live="polite">
        <Outcome error={error} done={done} />
      </span>
    </span>
  );
}

const isSubmit = (action: string) => action === "submit" || action.startsWith("form_submit:");

/** A form to fill in. What was typed stays until it is sent: over scrolling away, and a reload. */
export function FormView({ form }: { form: FormBlock }) {
  const { enabled, busy, error, done, submit } = useComponentAction();
  const draft = useFormDraft(form);
  const send = async (element: HTMLFormElement) => {
    if (await submit(`form_submit:${form.id}`, valuesOf(element, form))) draft.clear();
  };
  const submits = form.children.some((child) => child.type === "button" && isSubmit(child.action));
  return (
    <Form
      error={error}
      explain={fieldsNamed}
      onSubmit={(_, element) => void send(element)}
      onChange={(event) => draft.keep(event.currentTarget)}
      aria-label="Form"
      className="w-full max-w-md rounded-lg border border-line bg-surface p-4 text-ink shadow-low"
    >
      <fieldset disabled={!enabled || busy} className="flex min-w-0 flex-col gap-3">
        {form.children.map((child, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a form does not change once it is shown
          <FormPart key={index} part={child} drafted={draft.initial} />
        ))}
        <FormProblem />
        {!submits && (
          <Button type="submit" look="primary" size="small" busy={busy} className="self-start">
            Submit
          </Button>
        )}
      </fieldset>
      <div aria-live="polite" className="mt-1 empty:hidden">
        <Outcome error={null} done={done} />
      </div>
    </Form>
  );
}

/** The service names a submitted field by its path, `fields.<name>`. */
const fieldsNamed = (error: unknown) =>
  Object.fromEntries(
    Object.entries(fieldErrorsOf(error)).map(([path, text]) => [
      path.replace(/^fields\./, ""),
      text,
    ]),
  );

interface FormPartProps {
  part: FormBlock["children"][number];
  /** What was typed before, by the names of the fields. */
  drafted: Readonly<Record<string, string>>;
}

function FormPart({ part, drafted }: FormPartProps) {
  if (part.type === "markdown") return <Markdown text={part.text} />;
  if (part.type === "button")
    return isSubmit(part.action) ? (
      <Button type="submit" look="primary" size="small" className="self-start">
        {part.label}
      </Button>
    ) : (
      <ActionButton action={part.action} label={part.label} first={false} />
    );
  if (part.type === "input")
    return (
      <TextField
        label={part.required ? `${part.label} *` : part.label}
        name={part.name}
        type={part.input_type}
        required={part.required}
        defaultValue={drafted[part.name]}
        step={part.input_type === "number" ? "any" : undefined}
        maxLength={1000}
        autoComplete="off"
      />
    );
  return (
    <Field label={part.required ? `${part.label} *` : part.label} name={part.name}>
      {(attributes) => (
        <select
          {...attributes}
          name={part.name}
          required={part.required}
          defaultValue={drafted[part.name]}
          className="field"
        >
          {part.options.map((option) => (
            <option key={option}>{option}</option>
          ))}
        </select>
      )}
    </Field>
  );
}

function valuesOf(element: HTMLFormElement, form: FormBlock): Values {
  const data = new FormData(element);
  const values: Values = {};
  for (const child of form.children) {
    if (child.type !== "input" && child.type !== "select") continue;
    const value = String(data.get(child.name) ?? "");
    const number = child.type === "input" && child.input_type === "number" && value !== "";
    values[child.name] = number ? Number(value) : value;
  }
  return values;
}
