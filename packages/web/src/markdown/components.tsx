import { useClient } from "@parley/client/react";
import type { FormBlock } from "@parley/protocol/markup";
import { use, useState } from "react";
import { useAction } from "../lib/action.ts";
import { describeError, fieldErrorsOf } from "../lib/errors.ts";
import { answersTool } from "../tools/questions.ts";
import { Button } from "../ui/Button.tsx";
import { Field, TextField } from "../ui/Field.tsx";
import { Form, FormProblem } from "../ui/Form.tsx";
import { ActionTarget, useAvailability, useUses } from "./action-target.ts";
import { inRows } from "./button-rows.ts";
import { useFormDraft } from "./form-draft.ts";
import { Markdown } from "./Markdown.tsx";
import { Collapsible, ConfirmAgain, type Labels, UseList } from "./Uses.tsx";

type Values = Record<string, string | number>;

function useComponentAction(token: string) {
  const client = useClient();
  const target = use(ActionTarget);
  const { busy, error, run } = useAction();
  const submit = async (action: string, fields?: Values) => {
    if (!target) return false;
    const call = { chat_id: target.chatId, message_id: target.messageId, action };
    return run(() => client.sendComponentAction(fields ? { ...call, fields } : call));
  };
  return { ...useAvailability(token), busy, error, submit };
}

interface ActionButtonProps {
  action: string;
  label: string;
  first: boolean;
}

/** The first button of a row is emphasized. A button that was pressed asks before it is pressed again. */
export function ActionButton({ action, label, first }: ActionButtonProps) {
  const { enabled, busy, error, submit } = useComponentAction(action);
  const [asking, setAsking] = useState(false);
  const last = useUses([action]).at(-1);
  return (
    <span className="inline-flex max-w-full flex-col">
      <Button
        size="small"
        look={first && !last ? "primary" : "secondary"}
        {...(last && { icon: "check" as const })}
        busy={busy}
        disabled={!enabled}
        onClick={() => (last ? setAsking(true) : submit(action))}
        className="max-w-full pointer-coarse:h-11"
      >
        <span className="truncate">{label}</span>
      </Button>
      <span role="alert" className="text-sm text-danger not-empty:mt-1">
        {error !== null && describeError(error)}
      </span>
      {asking && last && (
        <ConfirmAgain
          last={last}
          label={label}
          onBack={() => setAsking(false)}
          onConfirm={() => {
            setAsking(false);
            void submit(action);
          }}
        />
      )}
    </span>
  );
}

const SUBMIT_LOOK = "self-start pointer-coarse:h-11 pointer-coarse:px-4";

const isSubmit = (action: string) => action === "submit" || action.startsWith("form_submit:");

/**
 * A form. It collapses for a person who has submitted it, and can be opened and submitted again. A form
 * in which a tool asks is answered once, by one person: it collapses for everybody, and does not open.
 */
export function FormView({ form }: { form: FormBlock }) {
  const token = `form_submit:${form.id}`;
  const target = use(ActionTarget);
  const labels = answerLabels(form);
  const uses = useUses([token, ...labels.keys()]);
  const isAnswer = answersTool(token);
  const isDone = uses.some(({ by }) => isAnswer || target?.isMe(by));
  return (
    <Collapsible
      role="group"
      label={target ? `Form of ${target.agent}` : "Form"}
      title=""
      uses={isDone ? uses : []}
      labels={labels}
      isFinal={isAnswer}
    >
      <FormFields form={form} token={token} />
      {!isDone && <UseList uses={uses} labels={labels} />}
    </Collapsible>
  );
}

/** The buttons of a form that answer what a tool asks, besides the one that submits it. */
const answerLabels = ({ children }: FormBlock): Labels =>
  new Map(
    children.flatMap((child) =>
      child.type === "button" && answersTool(child.action) ? [[child.action, "Declined"]] : [],
    ),
  );

/** The fields of a form. Typed values are kept as a draft until the form is submitted. */
function FormFields({ form, token }: { form: FormBlock; token: string }) {
  const { enabled, reason, busy, error, submit } = useComponentAction(token);
  const target = use(ActionTarget);
  const last = useUses([token]).findLast(({ by }) => target?.isMe(by));
  const [asking, setAsking] = useState<Values | null>(null);
  const draft = useFormDraft(form);
  const send = async (values: Values) => {
    setAsking(null);
    if (await submit(token, values)) draft.clear();
  };
  const hasSubmitButton = form.children.some(
    (child) => child.type === "button" && isSubmit(child.action),
  );
  return (
    <Form
      error={error}
      explain={formFieldErrors}
      onSubmit={(_, element) => {
        const values = valuesOf(element, form);
        if (last) setAsking(values);
        else void send(values);
      }}
      onChange={(event) => draft.keep(event.currentTarget)}
    >
      <fieldset
        disabled={!enabled || busy}
        // The empty place for an error of the form takes no room.
        className="flex min-w-0 flex-col gap-3 [&>[role=alert]:empty]:-mt-3"
      >
        {inRows(form.children).map((row, index) =>
          Array.isArray(row) ? (
            // biome-ignore lint/suspicious/noArrayIndexKey: a form does not change once it is shown
            <div key={index} className="flex flex-wrap items-start gap-2">
              {row.map((button) => (
                <FormButton key={`${button.action} ${button.label}`} {...button} />
              ))}
            </div>
          ) : (
            // biome-ignore lint/suspicious/noArrayIndexKey: a form does not change once it is shown
            <FormChild key={index} child={row} drafted={draft.initial} />
          ),
        )}
        <FormProblem />
        {reason && <p className="text-sm text-ink-3">{reason}</p>}
        {!hasSubmitButton && (
          <Button type="submit" look="primary" size="small" busy={busy} className={SUBMIT_LOOK}>
            Submit
          </Button>
        )}
      </fieldset>
      {asking && last && (
        <ConfirmAgain
          last={last}
          label={null}
          onBack={() => setAsking(null)}
          onConfirm={() => void send(asking)}
        />
      )}
    </Form>
  );
}

/** The server names a submitted field by its path, `fields.<name>`. */
const formFieldErrors = (error: unknown) =>
  Object.fromEntries(
    Object.entries(fieldErrorsOf(error)).map(([path, text]) => [
      path.replace(/^fields\./, ""),
      text,
    ]),
  );

type Child = FormBlock["children"][number];
type ButtonChild = Extract<Child, { type: "button" }>;

const FormButton = ({ action, label }: ButtonChild) =>
  isSubmit(action) ? (
    <Button type="submit" look="primary" size="small" className={SUBMIT_LOOK}>
      {label}
    </Button>
  ) : (
    <ActionButton action={action} label={label} first={false} />
  );

interface FormChildProps {
  child: Exclude<Child, ButtonChild>;
  /** Values of the draft by field name; null if there is none. */
  drafted: Readonly<Record<string, string>> | null;
}

function FormChild({ child, drafted }: FormChildProps) {
  if (child.type === "markdown") return <Markdown text={child.text} />;
  // A field that was cleared stays empty.
  const initial = drafted ? (drafted[child.name] ?? "") : child.value;
  if (child.type === "input")
    return (
      <TextField
        label={labelOf(child)}
        hint={child.hint}
        name={child.name}
        type={child.input_type}
        required={child.required}
        defaultValue={initial}
        step={child.input_type === "number" ? "any" : undefined}
        maxLength={1000}
        autoComplete="off"
      />
    );
  return <SelectField field={child} initial={initial} />;
}

const labelOf = ({ label, required }: { label: string; required: boolean }) =>
  required ? `${label} *` : label;

interface SelectFieldProps {
  field: Extract<FormBlock["children"][number], { type: "select" }>;
  initial: string | undefined;
}

function SelectField({ field, initial }: SelectFieldProps) {
  const { name, required, options } = field;
  return (
    <Field label={labelOf(field)} name={name} hint={field.hint}>
      {(attributes) => (
        <select
          {...attributes}
          name={name}
          required={required}
          defaultValue={initial}
          className="field"
        >
          {!required && <option value="">Nothing chosen</option>}
          {options.map((option) => (
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
