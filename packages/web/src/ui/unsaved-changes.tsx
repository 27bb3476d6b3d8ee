import { useEffect, useRef, useState } from "react";
import { Confirm } from "./Confirm.tsx";

/** Asks before a form with unsaved changes is closed, and before the page is left. */
export function useUnsavedChanges(onClose: () => void) {
  const form = useRef<HTMLFormElement>(null);
  const initial = useRef("");
  const [isAsking, setAsking] = useState(false);
  const isChanged = () => form.current !== null && valuesOf(form.current) !== initial.current;
  useEffect(() => {
    if (form.current) initial.current = valuesOf(form.current);
    const warn = (event: BeforeUnloadEvent) => {
      if (form.current && valuesOf(form.current) !== initial.current) event.preventDefault();
    };
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, []);
  const question = isAsking ? (
    <Confirm
      title="Discard your changes?"
      back="Keep editing"
      action="Discard"
      onBack={() => setAsking(false)}
      onConfirm={onClose}
    >
      They are not saved.
    </Confirm>
  ) : null;
  return { form, question, close: () => (isChanged() ? setAsking(true) : onClose()) };
}

const valuesOf = (form: HTMLFormElement) => JSON.stringify([...new FormData(form)]);
