import { useEffect, useRef, useState } from "react";

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
  return {
    form,
    isAsking,
    close: () => (isChanged() ? setAsking(true) : onClose()),
    stay: () => setAsking(false),
  };
}

const valuesOf = (form: HTMLFormElement) => JSON.stringify([...new FormData(form)]);
