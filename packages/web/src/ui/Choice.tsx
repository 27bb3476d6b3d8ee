import { useId, useState } from "react";

interface ChoiceProps<Value extends string> {
  label: string;
  value: Value;
  options: readonly { value: Value; label: string; hint?: string }[];
  onChange: (value: Value) => void;
  disabled?: boolean;
}

/** Radio buttons as a row of segments. */
export function Choice<Value extends string>(props: ChoiceProps<Value>) {
  const { label, value, options, onChange, disabled } = props;
  const name = useId();
  const [, renderAgain] = useState({});
  const choose = (chosen: Value) => {
    onChange(chosen);
    // The browser has checked the button already: it stays so only if the value has changed.
    renderAgain({});
  };
  const hint = options.find((option) => option.value === value)?.hint;
  return (
    // `relative` keeps the visually hidden inputs inside: otherwise focusing one would scroll the window.
    <fieldset className="relative min-w-0" disabled={disabled}>
      <legend className="sr-only">{label}</legend>
      <div className="flex gap-0.5 rounded-md bg-sunken p-0.5">
        {options.map((option) => (
          <label
            key={option.value}
            className="flex h-8 flex-1 cursor-pointer items-center justify-center rounded-sm px-2.5 text-center text-sm font-medium whitespace-nowrap text-ink-2 transition-colors has-checked:bg-chosen has-checked:text-ink has-checked:shadow-low forced-colors:has-checked:outline-2 has-focus-visible:outline-2 has-focus-visible:outline-accent"
          >
            <input
              type="radio"
              name={name}
              className="sr-only"
              checked={option.value === value}
              onChange={() => choose(option.value)}
            />
            {option.label}
          </label>
        ))}
      </div>
      {hint && <p className="mt-1.5 text-sm text-ink-3">{hint}</p>}
    </fieldset>
  );
}
