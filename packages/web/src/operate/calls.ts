import { useCallback, useEffect, useRef, useState } from "react";
import { useAction } from "../lib/action.ts";
import { useConnection } from "../lib/connection.ts";
import { codeOf } from "../lib/errors.ts";
import { useOperator } from "../lib/operator.ts";

/** How long to wait for the next key before the server is asked. */
const DEBOUNCE_MS = 200;

/** Work that only operators can do. If it is refused, checks whether the person still is one. */
export function useOperatorAction() {
  const action = useAction();
  useRefusalCheck(action.error);
  return action;
}

interface Fetched<Result> {
  /** The last result; null until there is one. It stays while the next one is fetched. */
  result: Result | null;
  problem: unknown;
  busy: boolean;
}

interface Fetching<Result> extends Fetched<Result> {
  reload: () => void;
  setResult: (change: (result: Result) => Result) => void;
}

/**
 * The result of a call: fetched at first, whenever `fetch` changes, and when the connection is back.
 * `fetch` must be stable.
 */
export function useFetched<Result>(fetch: () => Promise<Result>): Fetching<Result> {
  const isUp = useConnection() === "up";
  const [count, setCount] = useState(0);
  const [state, setState] = useState<Fetched<Result>>({ result: null, problem: null, busy: true });
  const lastFetch = useRef<unknown>(null);
  useRefusalCheck(state.problem);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another count fetches again
  useEffect(() => {
    if (!isUp) return;
    let cancelled = false;
    const show = (next: Partial<Fetched<Result>>) => {
      if (!cancelled) setState((before) => ({ ...before, busy: false, ...next }));
    };
    setState((before) => ({ ...before, busy: true }));
    const isTyping = lastFetch.current !== null && lastFetch.current !== fetch;
    const timer = setTimeout(
      () => {
        lastFetch.current = fetch;
        fetch().then(
          (result) => show({ result, problem: null }),
          (problem: unknown) => show({ problem }),
        );
      },
      isTyping ? DEBOUNCE_MS : 0,
    );
    return () => {
      cancelled = true;
      clearTimeout(timer);
    };
  }, [fetch, isUp, count]);
  const reload = useCallback(() => setCount((before) => before + 1), []);
  const setResult = useCallback(
    (change: (result: Result) => Result) =>
      setState(({ result, ...rest }) => ({ ...rest, result: result && change(result) })),
    [],
  );
  return { ...state, reload, setResult };
}

interface Page<Item> {
  items: Item[];
  next_cursor: string | null;
}

export interface Listing<Item> extends Omit<Fetching<Page<Item>>, "result" | "setResult"> {
  /** Null until the first page is loaded. */
  items: readonly Item[] | null;
  /** Loads the next page; null if there is none. */
  more: (() => void) | null;
  setItems: (change: (items: readonly Item[]) => Item[]) => void;
}

/** A list that is loaded in pages. `load` must be stable. */
export function useListing<Item>(
  load: (place: { cursor?: string }) => Promise<Page<Item>>,
): Listing<Item> {
  const first = useFetched(useCallback(() => load({}), [load]));
  const { result, setResult } = first;
  const next = useOperatorAction();
  const cursor = result?.next_cursor ?? null;
  const more = () =>
    void next.run(async () => {
      const page = await load({ ...(cursor !== null && { cursor }) });
      setResult((before) =>
        before.next_cursor === cursor
          ? { ...page, items: [...before.items, ...page.items] }
          : before,
      );
    });
  const setItems: Listing<Item>["setItems"] = (change) =>
    setResult(({ items, ...rest }) => ({ ...rest, items: change(items) }));
  return {
    items: result?.items ?? null,
    problem: first.problem ?? next.error,
    busy: first.busy || next.busy,
    more: cursor === null ? null : more,
    reload: first.reload,
    setItems,
  };
}

function useRefusalCheck(error: unknown): void {
  const { check } = useOperator();
  const isRefused = codeOf(error) === "forbidden";
  useEffect(() => {
    if (isRefused) check();
  }, [isRefused, check]);
}
