import { useState } from "react";
import { Field } from "../ui/Field.tsx";

const MAX_CHARACTERS = 8000;
/** The counter warns from here on. */
const WARNING_CHARACTERS = 7500;

/** A large field with a counter. */
export function InstructionsField({ text }: { text: string }) {
  const [length, setLength] = useState(text.length);
  const counter = `${length.toLocaleString()} of ${MAX_CHARACTERS.toLocaleString()} characters`;
  return (
    <Field
      label="Instructions"
      name="instructions"
      hint={
        <span className="flex flex-wrap justify-between gap-x-4">
          <span>What it should always keep in mind. Only you see them here.</span>
          <span className={`tabular-nums ${length > WARNING_CHARACTERS ? "text-warn" : ""}`}>
            {counter}
          </span>
        </span>
      }
    >
      {(attributes) => (
        <textarea
          {...attributes}
          name="instructions"
          rows={10}
          maxLength={MAX_CHARACTERS}
          defaultValue={text}
          placeholder="Answer briefly, and say when you are not sure."
          className="field"
          onInput={({ currentTarget }) => setLength(currentTarget.value.length)}
        />
      )}
    </Field>
  );
}
