import type { CallError } from "@parley/client";
import { useEffect, useState } from "react";
import { connectionMessages, useConnection } from "./connection.ts";
import { describeError } from "./errors.ts";

/** How long to wait for the next key before the server is asked. */
const DEBOUNCE_MS = 150;

export interface SearchResult<Item> {
  /** The query that the items match. */
  query: string;
  /** Null until the server has answered. */
  items: Item[] | null;
  /** Why the server could not be asked. */
  problem: string | null;
}

/**
 * Searches on the server while a query is typed. Searches again when the connection is back, and when
 * the server asks to; not at all while the query is null. `search` must be stable.
 */
export function useSearch<Item>(
  query: string | null,
  search: (query: string) => Promise<{ items: Item[] }>,
): SearchResult<Item> {
  const connection = useConnection();
  const [result, setResult] = useState<SearchResult<Item>>(nothing);
  useEffect(() => {
    if (query === null) return setResult(nothing());
    if (connection !== "up") {
      return setResult({ query, items: [], problem: connectionMessages[connection] });
    }
    let cancelled = false;
    const show = (items: Item[], problem: string | null) => {
      if (!cancelled) setResult({ query, items, problem });
    };
    const ask = () =>
      search(query).then(
        ({ items }) => show(items, null),
        (error: Partial<CallError>) => {
          show([], describeError(error));
          const { retryAfter } = error;
          if (!cancelled && retryAfter !== undefined) timer = setTimeout(ask, retryAfter * 1000);
        },
      );
    let timer = setTimeout(ask, DEBOUNCE_MS);
    return () => {
      cancelled = true;
      clearTimeout(timer);
    };
  }, [query, search, connection]);
  return result;
}

const nothing = () => ({ query: "", items: null, problem: null });
