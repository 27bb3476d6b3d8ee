import { useClient } from "@parley/client/react";
import type { OutputOf } from "@parley/protocol";
import { useEffect, useState } from "react";
import { wordsFor } from "../lib/action.ts";
import { connectionWords, useConnection } from "../lib/connection.ts";

type Found = OutputOf<"searchMessages">["items"];

interface Search {
  query: string;
  found: Found;
  /** Why nothing could be found. */
  problem: string | null;
}

const NOTHING: Search = { query: "", found: [], problem: null };
const SHORTEST = 2;

/**
 * Messages that contain what is being typed, a moment after the last key; settled when it is those.
 * Only the server has all of them, so that without a connection there are none, and that is said.
 */
export function useFoundMessages(query: string): Search & { settled: boolean } {
  const client = useClient();
  const connection = useConnection();
  const [last, setLast] = useState(NOTHING);
  useEffect(() => {
    if (query.length < SHORTEST) return setLast(NOTHING);
    if (connection !== "up") {
      return setLast({ query, found: [], problem: connectionWords[connection] });
    }
    let left = false;
    const timer = setTimeout(() => {
      client.searchMessages({ query, limit: 12 }).then(
        ({ items }) => !left && setLast({ query, found: items, problem: null }),
        (error: unknown) => !left && setLast({ query, found: [], problem: wordsFor(error) }),
      );
    }, 150);
    return () => {
      left = true;
      clearTimeout(timer);
    };
  }, [client, query, connection]);
  return { ...last, settled: query.length < SHORTEST || last.query === query };
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
