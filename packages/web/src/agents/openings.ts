import type { Client, LocalChat } from "@parley/client";
import { useClient } from "@parley/client/react";
import { useEffect } from "react";
import { messageLine } from "../files/describe.ts";
import { useSelf } from "../lib/me.ts";
import { chatTitle, isMyAgent, others } from "../lib/names.ts";
import { sharedValue } from "../lib/shared-value.ts";
import { useAgentChats } from "./chats.ts";

/** Fits in one line of the list. */
const MOST_CHARACTERS = 48;

/** The first words of conversations, by id. */
let known: Readonly<Record<string, string>> = {};
const openings = sharedValue(known);
const requested = new Set<string>();

/**
 * The title of a conversation. Several with the same agent would all have its name: those without a
 * title are called by the first words of their first message.
 */
export function useChatTitle(chat: LocalChat, isSibling: boolean): string {
  const me = useSelf();
  const client = useClient();
  const opening = openings.use()[chat.id];
  const isWanted = isSibling && chat.title === null;
  const isEmpty = chat.last_message === null;
  useEffect(() => {
    if (isWanted && !isEmpty) void load(client, chat.id);
  }, [client, chat.id, isWanted, isEmpty]);
  if (!isWanted) return chatTitle(chat, me);
  return isEmpty ? "New chat" : (opening ?? chatTitle(chat, me));
}

/** The same where it is not known whether there are several. */
export function useOneChatTitle(chat: LocalChat): string {
  const me = useSelf();
  const [other] = others(chat, me);
  const isAgents = chat.kind === "direct" && other !== undefined && isMyAgent(other, me);
  const siblings = useAgentChats(isAgents ? other.username : "");
  return useChatTitle(chat, isAgents && siblings.length > 1);
}

async function load(client: Client, id: string): Promise<void> {
  if (requested.has(id)) return;
  requested.add(id);
  try {
    const page = await client.getUpdates({ chat_id: id, since_seq: 0, limit: 5 });
    if (!("messages" in page)) return;
    const first = page.messages
      .filter(({ sender }) => sender.kind === "human")
      .sort((one, other) => one.seq - other.seq)[0];
    const line = first ? messageLine(first, MOST_CHARACTERS) : "";
    if (line === "") return;
    known = { ...known, [id]: line };
    openings.set(known);
  } catch {
    // The list shows the agent's name, and asks again the next time.
    requested.delete(id);
  }
}
