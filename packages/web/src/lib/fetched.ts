import { useStatus } from "@parley/client/react";
import { useCallback, useEffect, useRef, useState } from "react";
import { showError } from "./errors.ts";

export interface Fetching {
  /** Why the latest fetch failed; null if it did not. */
  problem: unknown;
  fetchAgain: () => void;
}

export interface Fetched<Value> extends Fetching {
  /** Null until it is fetched. */
  value: Value | null;
  /** Changes the value, as an operation has done. */
  change: (changed: (value: Value | null) => Value) => void;
}

/** What a call returns. It is fetched after each connection, and when `fetchValue` changes. */
export function useFetched<Value>(fetchValue: () => Promise<Value>): Fetched<Value> {
  const isOnline = useStatus() === "online";
  const [value, setValue] = useState<Value | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const requests = useRef(0);
  const change = useCallback((changed: (value: Value | null) => Value) => {
    requests.current++;
    setValue(changed);
    setProblem(null);
  }, []);
  const fetchAgain = useCallback(() => {
    const request = ++requests.current;
    const isLatest = () => request === requests.current;
    fetchValue().then(
      (found) => isLatest() && change(() => found),
      (error: unknown) => isLatest() && setProblem(error),
    );
  }, [fetchValue, change]);
  useEffect(() => {
    if (isOnline) fetchAgain();
  }, [isOnline, fetchAgain]);
  const hasValue = value !== null;
  // What is shown may be out of date.
  useEffect(() => {
    if (hasValue && problem !== null) showError(problem);
  }, [hasValue, problem]);
  return { value, problem, fetchAgain, change };
}
