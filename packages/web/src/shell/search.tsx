import { useClient } from "@parley/client/react";
import type { OutputOf } from "@parley/protocol";
import { useEffect, useState } from "react";

type Found = OutputOf<"searchMessages">["items"];

const NOTHING: { query: string; found: Found } = { query: "", found: [] };
const SHORTEST = 2;

/** Messages that contain what is being typed, a moment after the last key; settled when it is those. */
export function useFoundMessages(query: string): { found: Found; settled: boolean } {
  const client = useClient();
  const [last, setLast] = useState(NOTHING);
  useEffect(() => {
    if (query.length < SHORTEST) return setLast(NOTHING);
    let left = false;
    const timer = setTimeout(() => {
      client.searchMessages({ query, limit: 12 }).then(
        ({ items }) => !left && setLast({ query, found: items }),
        () => !left && setLast({ query, found: [] }),
      );
    }, 150);
    return () => {
      left = true;
      clearTimeout(timer);
    };
  }, [client, query]);
  return { found: last.found, settled: query.length < SHORTEST || last.query === query };
}

/** What matched stands between double asterisks. */
export function Snippet({ text }: { text: string }) {
  return text.split("**").map((part, index) =>
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
