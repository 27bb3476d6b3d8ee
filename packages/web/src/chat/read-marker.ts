import type { LocalChat, LocalMessage } from "@parley/client";
import { useClient } from "@parley/client/react";
import { useEffect, useRef, useState } from "react";

/**
 * Marks as read what the person has before their eyes. Returns up to where they had read when they
 * came; null when there was nothing new.
 */
export function useReadMarker(
  chat: LocalChat,
  items: readonly LocalMessage[],
  inSight: boolean,
): number | null {
  const client = useClient();
  const watching = useWatching();
  const [line, setLine] = useState(() => (chat.unread_count > 0 ? chat.last_read_seq : null));
  const last = items.findLast(({ seq }) => seq > 0)?.seq ?? 0;
  const newest = useRef(last);
  newest.current = last;

  // Whoever looks away and comes back finds the line where they looked away; one who has not looked
  // yet, as in a tab behind others, keeps the one they came with.
  useEffect(() => {
    if (watching) return () => setLine(newest.current);
  }, [watching]);

  useEffect(() => {
    if (!inSight || !watching || last === 0) return;
    client.model.markRead(chat.id);
  }, [client, chat.id, inSight, watching, last]);

  const unsent = items.at(-1)?.delivery === "sending";
  useEffect(() => {
    if (unsent) setLine(null);
  }, [unsent]);

  return line;
}

function useWatching(): boolean {
  const [watching, setWatching] = useState(() => document.visibilityState === "visible");
  useEffect(() => {
    const look = () => setWatching(document.visibilityState === "visible");
    document.addEventListener("visibilitychange", look);
    return () => document.removeEventListener("visibilitychange", look);
  }, []);
  return watching;
}
