import type { Client } from "@parley/client";
import { useClient } from "@parley/client/react";
import { useEffect, useRef } from "react";
import { useChatContext } from "../context.ts";
import type { ComposerText } from "./composer-text.ts";
import { addressed, unaddressed } from "./mention.ts";
import type { Writing } from "./writing.ts";

/**
 * Puts an agent's handle in front of a reply to it, because most agents of a group answer only when
 * they are mentioned. Removes the handle again if the agent turns out to answer every message.
 */
export function useReplyHandle(writing: Writing, field: ComposerText): void {
  const { chat } = useChatContext();
  const client = useClient();
  const latest = useRef(field);
  latest.current = field;
  useEffect(() => {
    if (writing.kind !== "reply" || chat.kind !== "group") return;
    const { sender } = writing.message;
    if (sender.kind !== "agent") return;
    let cancelled = false;
    const change = (by: typeof addressed): boolean => {
      const { text, caret, replace } = latest.current;
      const next = by(text, sender.username);
      if (next !== text) replace(next, Math.max(0, caret + next.length - text.length));
      return next !== text;
    };
    if (!change(addressed)) return;
    void isAlwaysOn(client, chat.id, sender.username).then((alwaysOn) => {
      if (alwaysOn && !cancelled) change(unaddressed);
    });
    return () => {
      cancelled = true;
    };
  }, [writing, chat.kind, chat.id, client]);
}

/** Whether an agent of a group answers every message, as far as the server can be asked. */
async function isAlwaysOn(client: Client, chat_id: string, username: string): Promise<boolean> {
  // The handle that it does not need does no harm.
  const { items } = await client.getGroupAgents({ chat_id }).catch(() => ({ items: [] }));
  return items.some(({ agent, always_on }) => agent.username === username && always_on);
}
