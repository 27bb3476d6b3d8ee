import {
  type InputEvent,
  type InputHTMLAttributes,
  type ReactNode,
  type Ref,
  useId,
  useState,
} from "react";
import { focusOnMount } from "../lib/focus.ts";
import { useFieldError } from "./Form.tsx";
import { Icon } from "./Icon.tsx";

interface FieldProps {
  label: string;
  /** Its name in the surrounding `Form`, whose errors it shows. */
  name?: string | undefined;
  hint?: ReactNode;
  error?: string | undefined;
  children: (attributes: {
    id: string;
    "aria-describedby": string | undefined;
    "aria-invalid": boolean | undefined;
  }) => ReactNode;
}

/** A control with its label, hint and error, associated for screen readers. */
export function Field({ label, name, hint, error: ownError, children }: FieldProps) {
  const id = useId();
  const formError = useFieldError(name);
  const error = ownError ?? formError;
  const note = error ?? hint;
  return (
    <div className="flex flex-col gap-1.5">
      <label htmlFor={id} className="text-sm font-medium">
        {label}
      </label>
      {children({
        id,
        "aria-describedby": note ? `${id}-note` : undefined,
        "aria-invalid": error ? true : undefined,
      })}
      {note && (
        <p
          id={`${id}-note`}
          role={error ? "alert" : undefined}
          className={`flex scroll-my-4 items-start gap-1.5 text-sm ${error ? "text-danger" : "text-ink-3"}`}
        >
          {error && (
            <span className="mt-0.5">
              <Icon name="alert" size={15} />
            </span>
          )}
          <span className="min-w-0 flex-1">{note}</span>
        </p>
      )}
    </div>
  );
}

interface TextFieldProps extends InputHTMLAttributes<HTMLInputElement> {
  label: string;
  hint?: ReactNode;
  error?: string | undefined;
  ref?: Ref<HTMLInputElement>;
}

/**
 * At the end of its room it says so, because the browser ignores further characters. A secret (`type`
 * is `password`) has a button that shows it.
 */
export function TextField({ label, hint, error, type, autoFocus, ...input }: TextFieldProps) {
  const { name, maxLength = Number.POSITIVE_INFINITY } = input;
  const [isFull, setFull] = useState(false);
  const [isShown, setShown] = useState(false);
  const isSecret = type === "password";
  const handleInput = (event: InputEvent<HTMLInputElement>) => {
    setFull(event.currentTarget.value.length >= maxLength);
    input.onInput?.(event);
  };
  return (
    <Field
      label={label}
      name={name}
      hint={isFull ? `At most ${maxLength} characters.` : hint}
      error={error}
    >
      {(attributes) => (
        <span className="relative">
          <input
            {...attributes}
            {...(isSecret && { autoCapitalize: "none" })}
            {...(autoFocus && { ref: focusOnMount })}
            {...input}
            spellCheck={isSecret || input.spellCheck === false ? "false" : undefined}
            type={isSecret && isShown ? "text" : type}
            onInput={handleInput}
            className={`field ${isSecret ? "pr-10!" : ""}`}
          />
          {isSecret && (
            <ShowButton label={label} isShown={isShown} onPress={() => setShown(!isShown)} />
          )}
        </span>
      )}
    </Field>
  );
}

interface ShowButtonProps {
  /** The label of the field. */
  label: string;
  isShown: boolean;
  onPress: () => void;
}

/** Shows or hides what is typed into a field for a secret. */
function ShowButton({ label, isShown, onPress }: ShowButtonProps) {
  const action = isShown ? "Hide" : "Show";
  return (
    <button
      type="button"
      title={action}
      onClick={onPress}
      className="absolute inset-y-0 right-0 inline-flex w-10 items-center justify-center rounded-md text-ink-3 transition-colors hover:text-ink focus-visible:-outline-offset-2 disabled:opacity-60"
    >
      <span className="sr-only">
        {action} {label}
      </span>
      <Icon name={isShown ? "hide" : "show"} size={17} />
    </button>
  );
}
