import type { LocalMessage } from "@parley/client";
import { useEffect, useRef, useState } from "react";
import { messageLine } from "../files/describe.ts";
import { useIsBlocked } from "../lib/blocked.ts";
import { useSelf } from "../lib/me.ts";
import { useSenderName } from "./sender-names.ts";

/** Announces complete messages of others to screen readers, once each. */
export function Announcer({ items }: { items: readonly LocalMessage[] }) {
  const me = useSelf();
  const speaker = useSenderName();
  const isBlocked = useIsBlocked();
  const [text, setText] = useState("");
  const announced = useRef<number | null>(null);
  useEffect(() => {
    const complete = items.filter(({ finalized_at }) => finalized_at !== null);
    const last = complete.at(-1)?.seq ?? 0;
    const since = announced.current;
    if (items.length > 0) announced.current = Math.max(last, since ?? 0);
    if (since === null) return;
    const added = complete.filter(
      ({ seq, sender }) => seq > since && sender.username !== me.username && !isBlocked(sender),
    );
    if (added.length === 0) return;
    setText(
      added.map((message) => `${speaker(message.sender)}: ${messageLine(message, 300)}`).join(". "),
    );
  }, [items, me.username, speaker, isBlocked]);
  return (
    <div aria-live="polite" aria-atomic="true" className="sr-only">
      {text}
    </div>
  );
}
