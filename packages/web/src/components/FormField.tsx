import type { FormBlock } from "@parley/protocol/markup";
import { Markdown } from "../markdown/Markdown.tsx";
import { Field, TextField } from "../ui/Field.tsx";

type Child = FormBlock["children"][number];

interface FormFieldProps {
  child: Exclude<Child, { type: "button" }>;
  /** Values of the draft by field name; null if there is none. */
  drafted: Readonly<Record<string, string>> | null;
}

/** A field of a form, or text between its fields. */
export function FormField({ child, drafted }: FormFieldProps) {
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
  field: Extract<Child, { type: "select" }>;
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
            <option key={option} value={option}>
              {option}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
