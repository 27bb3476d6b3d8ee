import {
  createContext,
  type FormEvent,
  type FormHTMLAttributes,
  type ReactNode,
  use,
  useCallback,
  useEffect,
  useRef,
  useState,
} from "react";
import { describeError, fieldErrorsOf } from "../lib/errors.ts";
import { type FieldErrors, isFormField, validationError } from "../lib/validation.ts";
import { Notice } from "./Notice.tsx";

interface FormState {
  /** What is wrong with each field, by name. */
  errors: FieldErrors;
  /** What is wrong and belongs to no field. */
  problem: string | null;
}

const FormContext = createContext<FormState>({ errors: {}, problem: null });

/** What is wrong with the field of that name. */
export const useFieldError = (name: string | undefined) => use(FormContext).errors[name ?? ""];

interface FormProps extends Omit<FormHTMLAttributes<HTMLFormElement>, "onSubmit"> {
  /** What the last attempt failed with. */
  error: unknown;
  /** Says which fields an error is about, where the service names none. */
  explain?: (error: unknown) => FieldErrors;
  onSubmit: (values: FormValues, form: HTMLFormElement) => void;
  children: ReactNode;
}

interface FormValues {
  /** What was typed into a field, without white space around it. */
  text(name: string): string;
  /** As it was typed, such as a password. */
  raw(name: string): string;
}

/**
 * A form that says what is wrong beside the field it is about, and puts the focus there: what the
 * browser can tell before anything is sent, and what the service answers afterwards.
 */
export function Form({ error, explain, onSubmit, children, ...rest }: FormProps) {
  const form = useRef<HTMLFormElement>(null);
  const [state, setState] = useState<FormState>({ errors: {}, problem: null });
  const explaining = useRef(explain);
  explaining.current = explain;

  const show = useCallback((errors: FieldErrors, problem: string | null) => {
    setState({ errors, problem });
    const [first] = Object.keys(errors);
    if (first) fieldOf(form.current, first)?.focus();
  }, []);
  useEffect(() => {
    if (error === null) return;
    const told = { ...fieldErrorsOf(error), ...explaining.current?.(error) };
    const placed = Object.entries(told).filter(([name]) => fieldOf(form.current, name));
    const errors = Object.fromEntries(placed);
    show(errors, placed.length > 0 ? null : describeError(error));
  }, [error, show]);

  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const fields = [...event.currentTarget.elements].filter(isFormField);
    const errors: FieldErrors = {};
    for (const field of fields) {
      const complaint = validationError(field);
      if (complaint !== null) errors[field.name] = complaint;
    }
    show(errors, null);
    if (Object.keys(errors).length > 0) return;
    const data = new FormData(event.currentTarget);
    const raw = (name: string) => String(data.get(name) ?? "");
    onSubmit({ raw, text: (name) => raw(name).trim() }, event.currentTarget);
  };
  const changed = ({ target }: FormEvent<HTMLFormElement>) => {
    if (!isFormField(target) || state.errors[target.name] === undefined) return;
    const { [target.name]: _, ...errors } = state.errors;
    setState({ ...state, errors });
  };
  return (
    <FormContext value={state}>
      <form {...rest} ref={form} noValidate onSubmit={submit} onInput={changed}>
        {children}
      </form>
    </FormContext>
  );
}

/** What went wrong with the form as a whole, in a line of its own. */
export function FormProblem() {
  const { problem } = use(FormContext);
  return problem === null ? null : <Notice>{problem}</Notice>;
}

function fieldOf(form: HTMLFormElement | null, name: string): HTMLElement | null {
  const found = form?.elements.namedItem(name) ?? null;
  return isFormField(found) && found.type !== "hidden" ? found : null;
}
