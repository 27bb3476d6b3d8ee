import {
  createContext,
  type FormEvent,
  type FormHTMLAttributes,
  type InputEvent,
  type ReactNode,
  type RefObject,
  use,
  useCallback,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from "react";
import { describeError, fieldErrorsOf } from "../lib/errors.ts";
import {
  type FieldErrors,
  isFormField,
  isMissing,
  MISSING,
  validationError,
} from "../lib/validation.ts";
import { Notice } from "./Notice.tsx";

interface FormState {
  /** Errors of fields, by name. */
  errors: FieldErrors;
  /** An error that belongs to no field. */
  problem: string | null;
}

const FormContext = createContext<FormState>({ errors: {}, problem: null });

/** The error of the field with this name. */
export const useFieldError = (name: string | undefined) => use(FormContext).errors[name ?? ""];

interface FormProps extends Omit<FormHTMLAttributes<HTMLFormElement>, "onSubmit"> {
  /** The error of the last attempt; null if there is none. */
  error: unknown;
  /** Maps an error to fields where the server names none. */
  explain?: (error: unknown) => FieldErrors;
  onSubmit: (values: FormValues, form: HTMLFormElement) => void;
  ref?: RefObject<HTMLFormElement | null>;
  children: ReactNode;
}

export interface FormValues {
  /** The value of a field without surrounding white space. */
  text(name: string): string;
  /** The value as it was typed; for passwords. */
  raw(name: string): string;
}

/**
 * A form that shows errors beside their fields and focuses the first of them: errors that the browser
 * finds before anything is sent, and errors that the server answers.
 */
export function Form(props: FormProps) {
  const { error, explain, onSubmit, onInput, children, ref, ...rest } = props;
  const own = useRef<HTMLFormElement>(null);
  const form = ref ?? own;
  const [state, setState] = useState<FormState>({ errors: {}, problem: null });
  /** The errors of the last attempt, also those of fields that were changed since. */
  const [found, setFound] = useState<FieldErrors>({});
  const latestExplain = useRef(explain);
  latestExplain.current = explain;

  const show = useCallback((errors: FieldErrors, problem: string | null) => {
    setState({ errors, problem });
    setFound(errors);
  }, []);
  // Not a layout effect: the fields show their errors after this component has rendered.
  useEffect(() => {
    const [first] = Object.keys(found);
    if (first) focusInvalid(fieldOf(form.current, first));
  }, [found, form]);
  useEffect(() => {
    if (error === null) return;
    const named = { ...fieldErrorsOf(error), ...latestExplain.current?.(error) };
    const placed = Object.entries(named).filter(([name]) => fieldOf(form.current, name));
    const errors = Object.fromEntries(placed);
    show(errors, placed.length > 0 ? null : describeError(error));
  }, [error, show, form]);

  // A field may be filled by what is typed into another one, as a handle by a name.
  useLayoutEffect(() => {
    const missing = Object.entries(state.errors).filter(([, error]) => error === MISSING);
    const filled = missing.filter(([name]) => !isMissing(form.current?.elements.namedItem(name)));
    if (filled.length === 0) return;
    const errors = { ...state.errors };
    for (const [name] of filled) delete errors[name];
    setState({ ...state, errors });
  }, [state, form]);

  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const fields = [...event.currentTarget.elements].filter(isFormField);
    const errors: FieldErrors = {};
    for (const field of fields) {
      const invalid = validationError(field);
      if (invalid !== null) errors[field.name] = invalid;
    }
    show(errors, null);
    if (Object.keys(errors).length > 0) return;
    const data = new FormData(event.currentTarget);
    const raw = (name: string) => String(data.get(name) ?? "");
    onSubmit({ raw, text: (name) => raw(name).trim() }, event.currentTarget);
  };
  const handleInput = (event: InputEvent<HTMLFormElement>) => {
    const { target } = event;
    onInput?.(event);
    if (
      !isFormField(target) ||
      (state.problem === null && Object.keys(state.errors).length === 0)
    ) {
      return;
    }
    const { [target.name]: _, ...errors } = state.errors;
    setState({ errors, problem: null });
  };
  return (
    <FormContext value={state}>
      <form {...rest} ref={form} noValidate onSubmit={submit} onInput={handleInput}>
        {children}
      </form>
    </FormContext>
  );
}

/** The error that belongs to no field. */
export function FormProblem() {
  const { problem } = use(FormContext);
  return problem === null ? null : <Notice>{problem}</Notice>;
}

/** Focuses a field and scrolls to its error, which stands below the field. */
function focusInvalid(field: HTMLElement | null): void {
  field?.focus();
  const note = document.getElementById(field?.getAttribute("aria-describedby") ?? "");
  note?.scrollIntoView({ block: "nearest" });
}

function fieldOf(form: HTMLFormElement | null, name: string): HTMLElement | null {
  const found = form?.elements.namedItem(name) ?? null;
  return isFormField(found) && found.type !== "hidden" ? found : null;
}
