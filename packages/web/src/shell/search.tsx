import { useClient } from "@parley/client/react";
import type { OutputOf } from "@parley/protocol";
import { useEffect, useState } from "react";

type Found = OutputOf<"searchMessages">["items"];

const NOTHING: Found = [];

/** Messages that contain what is being typed, a moment after the last key. */
export function useFoundMessages(query: string): Found {
  const client = useClient();
  const [found, setFound] = useState(NOTHING);
  useEffect(() => {
    if (query.length < 2) return setFound(NOTHING);
    let left = false;
    const timer = setTimeout(() => {
      client.searchMessages({ query, limit: 12 }).then(
        ({ items }) => !left && setFound(items),
        () => !left && setFound(NOTHING),
      );
    }, 150);
    return () => {
      left = true;
      clearTimeout(timer);
    };
  }, [client, query]);
  return found;
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
