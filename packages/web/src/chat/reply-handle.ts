import type { Client } from "@parley/client";
import { useClient } from "@parley/client/react";
import { useEffect, useRef } from "react";
import type { Writing } from "./Composer.tsx";
import { useTools } from "./context.ts";
import { addressed, unaddressed } from "./mention.ts";

interface Field {
  text: string;
  caret: number;
  /** Replaces the text and moves the caret. */
  put: (text: string, caret: number) => void;
}

/**
 * Puts an agent's handle in front of a reply to it: one that answers only when it is mentioned would
 * not notice the reply. The handle goes again if the agent turns out to answer every message.
 */
export function useReplyHandle(writing: Writing, field: Field): void {
  const { chat } = useTools();
  const client = useClient();
  const latest = useRef(field);
  latest.current = field;
  useEffect(() => {
    if (writing.kind !== "reply" || chat.kind !== "group") return;
    const { sender } = writing.message;
    if (sender.kind !== "agent") return;
    let cancelled = false;
    const change = (by: typeof addressed): boolean => {
      const { text, caret, put } = latest.current;
      const next = by(text, sender.username);
      if (next !== text) put(next, Math.max(0, caret + next.length - text.length));
      return next !== text;
    };
    if (!change(addressed)) return;
    void answersUnasked(client, chat.id, sender.username).then((unasked) => {
      if (unasked && !cancelled) change(unaddressed);
    });
    return () => {
      cancelled = true;
    };
  }, [writing, chat.kind, chat.id, client]);
}

/** Whether an agent of a group answers every message; if that cannot be asked, it does not. */
async function answersUnasked(client: Client, chat_id: string, username: string): Promise<boolean> {
  const { items } = await client.getGroupAgents({ chat_id }).catch(() => ({ items: [] }));
  return items.some(({ agent, always_on }) => agent.username === username && always_on);
}
