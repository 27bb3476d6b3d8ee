import { useCallback, useRef, useState } from "react";

interface Action {
  busy: boolean;
  error: unknown;
  /** Resolves to true if the work succeeded. Does nothing while earlier work is running. */
  run: (work: () => Promise<unknown>) => Promise<boolean>;
  /** Forgets the error, as when its field is changed. */
  clearError: () => void;
}

/** Work that a person started: whether it is running, and the error it failed with. */
export function useAction(): Action {
  const [state, setState] = useState<{ busy: boolean; error: unknown }>({
    busy: false,
    error: null,
  });
  const running = useRef(false);
  const run = useCallback(async (work: () => Promise<unknown>) => {
    if (running.current) return false;
    running.current = true;
    setState({ busy: true, error: null });
    try {
      await work();
      setState({ busy: false, error: null });
      return true;
    } catch (error) {
      setState({ busy: false, error });
      return false;
    } finally {
      running.current = false;
    }
  }, []);
  const clearError = useCallback(
    () => setState((state) => (state.error === null ? state : { ...state, error: null })),
    [],
  );
  return { ...state, run, clearError };
}
