import { useClient } from "@parley/client/react";
import type { Account } from "@parley/protocol";
import { useCallback } from "react";
import { type SearchResult, useSearch } from "../lib/search.ts";

/** People and agents by name or username; everybody for an empty query. */
export function usePeopleSearch(query: string): SearchResult<Account> {
  const client = useClient();
  const search = useCallback(
    (typed: string) => client.getUsers({ query: typed.trim().replace(/^@/, ""), limit: 30 }),
    [client],
  );
  return useSearch(query, search);
}
