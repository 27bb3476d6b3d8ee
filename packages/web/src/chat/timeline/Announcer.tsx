import type { LocalMessage } from "@parley/client";
import { useEffect, useRef, useState } from "react";
import { messageLine } from "../../files/describe.ts";
import { useIsBlocked } from "../../lib/blocked.ts";
import { useSelf } from "../../lib/me.ts";
import { useSenderName } from "../sender-names.ts";

/** Announces complete messages of others to screen readers, once each. */
export function Announcer({ items }: { items: readonly LocalMessage[] }) {
  const me = useSelf();
  const speaker = useSenderName();
  const isBlocked = useIsBlocked();
  const [text, setText] = useState("");
  const announced = useRef<number | null>(null);
  /** Answers that are being written. Later messages may be complete before them. */
  const unfinished = useRef<ReadonlySet<string>>(new Set());
  useEffect(() => {
    const complete = items.filter(({ finalized_at }) => finalized_at !== null);
    const since = announced.current;
    const wasUnfinished = unfinished.current;
    if (items.length > 0) {
      announced.current = Math.max(since ?? 0, ...complete.map(({ seq }) => seq));
    }
    unfinished.current = new Set(
      items.filter(({ finalized_at }) => finalized_at === null).map(({ id }) => id),
    );
    if (since === null) return;
    const added = complete.filter(
      ({ id, seq, sender }) =>
        (seq > since || wasUnfinished.has(id)) &&
        sender.username !== me.username &&
        !isBlocked(sender),
    );
    if (added.length === 0) return;
    setText(
      added
        .map((message) => `${speaker(message.sender)}: ${messageLine(message, 300, me)}`)
        .join(". "),
    );
  }, [items, me, speaker, isBlocked]);
  return (
    <div aria-live="polite" aria-atomic="true" className="sr-only">
      {text}
    </div>
  );
}
