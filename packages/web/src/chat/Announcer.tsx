import type { LocalMessage } from "@parley/client";
import { plainText } from "@parley/protocol/markup";
import { useEffect, useRef, useState } from "react";
import { useSelf } from "../lib/me.ts";
import { useSenderName } from "./sender-names.ts";

/** Reads messages of others to screen readers, once each and when they are complete. */
export function Announcer({ items }: { items: readonly LocalMessage[] }) {
  const me = useSelf();
  const speaker = useSenderName();
  const [text, setText] = useState("");
  const told = useRef<number | null>(null);
  useEffect(() => {
    const complete = items.filter(({ finalized_at }) => finalized_at !== null);
    const last = complete.at(-1)?.seq ?? 0;
    const since = told.current;
    if (items.length > 0) told.current = Math.max(last, since ?? 0);
    if (since === null) return;
    const fresh = complete.filter(
      ({ seq, sender }) => seq > since && sender.username !== me.username,
    );
    if (fresh.length === 0) return;
    setText(
      fresh
        .map(({ sender, content }) => `${speaker(sender)}: ${plainText(content, 300)}`)
        .join(". "),
    );
  }, [items, me.username, speaker]);
  return (
    <div aria-live="polite" aria-atomic="true" className="sr-only">
      {text}
    </div>
  );
}
