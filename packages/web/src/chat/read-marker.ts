import type { LocalChat, LocalMessage } from "@parley/client";
import { useClient } from "@parley/client/react";
import { useEffect, useRef, useState } from "react";

/**
 * Marks messages as read while the end of the conversation is visible. Returns the `seq` up to which
 * the person had read before, for the line above the first unread message; null without unread ones.
 */
export function useReadMarker(
  chat: LocalChat,
  items: readonly LocalMessage[],
  isEndVisible: boolean,
): number | null {
  const client = useClient();
  const isVisible = useTabVisible();
  const [readUpTo, setReadUpTo] = useState(() =>
    chat.unread_count > 0 ? chat.last_read_seq : null,
  );
  const last = items.findLast(({ seq }) => seq > 0)?.seq ?? 0;
  const newest = useRef(last);
  newest.current = last;

  // When the tab is hidden, the line moves to the latest message. A tab that was never visible keeps the
  // line it started with.
  useEffect(() => {
    if (isVisible) return () => setReadUpTo(newest.current);
  }, [isVisible]);

  useEffect(() => {
    if (!isEndVisible || !isVisible || last === 0) return;
    client.model.markRead(chat.id);
  }, [client, chat.id, isEndVisible, isVisible, last]);

  const unsent = items.at(-1)?.delivery === "sending";
  useEffect(() => {
    if (unsent) setReadUpTo(null);
  }, [unsent]);

  return readUpTo;
}

function useTabVisible(): boolean {
  const [isVisible, setVisible] = useState(() => document.visibilityState === "visible");
  useEffect(() => {
    const update = () => setVisible(document.visibilityState === "visible");
    document.addEventListener("visibilitychange", update);
    return () => document.removeEventListener("visibilitychange", update);
  }, []);
  return isVisible;
}
