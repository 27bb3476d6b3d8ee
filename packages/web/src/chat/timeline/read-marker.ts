import type { LocalChat, LocalMessage } from "@parley/client";
import { useClient } from "@parley/client/react";
import { useEffect, useRef, useState } from "react";

interface ReadMarker {
  /** The `seq` up to which the person had read before; null without unread messages. */
  readUpTo: number | null;
  /** How many messages were unread. */
  unread: number;
}

/**
 * Marks messages as read while the end of the conversation is visible. Returns where the first message
 * is that was unread before.
 */
export function useReadMarker(
  chat: LocalChat,
  items: readonly LocalMessage[],
  isEndVisible: boolean,
): ReadMarker {
  const client = useClient();
  const isVisible = useTabVisible();
  const [readUpTo, setReadUpTo] = useState(() =>
    chat.unread_count > 0 ? chat.last_read_seq : null,
  );
  const [unread, setUnread] = useState(0);
  useEffect(() => setUnread((most) => Math.max(most, chat.unread_count)), [chat.unread_count]);
  const last = items.findLast(({ seq }) => seq > 0)?.seq ?? 0;
  const newest = useRef(last);
  newest.current = last;

  // When the tab is hidden, the line moves to the latest message. A tab that was never visible keeps the
  // line it started with.
  useEffect(() => {
    if (!isVisible) return;
    return () => {
      setReadUpTo(newest.current);
      setUnread(0);
    };
  }, [isVisible]);

  useEffect(() => {
    if (!isEndVisible || !isVisible || last === 0) return;
    client.model.markRead(chat.id);
  }, [client, chat.id, isEndVisible, isVisible, last]);

  const unsent = items.at(-1)?.delivery === "sending";
  useEffect(() => {
    if (unsent) setReadUpTo(null);
  }, [unsent]);

  return { readUpTo, unread };
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
