import type { FormBlock } from "@parley/protocol/markup";
import { use, useState } from "react";
import { fieldErrorsOf } from "../lib/errors.ts";
import { answersTool } from "../tools/questions.ts";
import { Button } from "../ui/Button.tsx";
import { Form, FormProblem } from "../ui/Form.tsx";
import { ActionButton } from "./ActionButton.tsx";
import { ActionTarget, useUses } from "./action-target.ts";
import { inRows } from "./button-rows.ts";
import { useComponentAction, type Values } from "./component-action.ts";
import { FormField } from "./FormField.tsx";
import { useFormDraft } from "./form-draft.ts";
import { Collapsible, ConfirmAgain, type Labels, UseList } from "./Uses.tsx";

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
      onInput={(event) => draft.keep(event.currentTarget)}
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
            <FormField key={index} child={row} drafted={draft.initial} />
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

type ButtonChild = Extract<FormBlock["children"][number], { type: "button" }>;

const FormButton = ({ action, label }: ButtonChild) =>
  isSubmit(action) ? (
    <Button type="submit" look="primary" size="small" className={SUBMIT_LOOK}>
      {label}
    </Button>
  ) : (
    <ActionButton action={action} label={label} first={false} />
  );

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
