import { useClient } from "@parley/client/react";
import type { OutputOf } from "@parley/protocol";
import { useCallback } from "react";
import { type SearchResult, useSearch } from "../lib/search.ts";

type Hit = OutputOf<"searchMessages">["items"][number];

const MIN_QUERY_LENGTH = 2;

/** Messages that contain what is typed. `isSettled`: the result is for the current query. */
export function useMessageSearch(query: string): SearchResult<Hit> & { isSettled: boolean } {
  const client = useClient();
  const isShort = query.length < MIN_QUERY_LENGTH;
  const search = useCallback(
    (typed: string) => client.searchMessages({ query: typed, limit: 12 }),
    [client],
  );
  const result = useSearch(isShort ? null : query, search);
  return { ...result, isSettled: isShort || result.query === query };
}

/** Fences of code with their language, marks of inline code, and those of headings and quotes. */
const MARKUP = /(?:`{3,}|~{3,})[^\s`~]*|`+|(?<=^|\s)(?:#{1,6}|>)(?=\s)/g;

/** A snippet of a search result as plain text. Matches stand between double asterisks in it. */
export function Snippet({ text }: { text: string }) {
  return text
    .replace(MARKUP, "")
    .split("**")
    .map((part, index) =>
      index % 2 === 1 ? (
        // biome-ignore lint/suspicious/noArrayIndexKey: pieces of one text have no other name
        <mark key={index} className="rounded-xs bg-accent-soft text-ink">
          {part}
        </mark>
      ) : (
        part
      ),
    );
}
