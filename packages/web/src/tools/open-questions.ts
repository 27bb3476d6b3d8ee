import { useChatIds, useClient, useStatus } from "@parley/client/react";
import type { Account, Message } from "@parley/protocol";
import { useEffect, useRef, useState } from "react";
import { isMyAgent } from "../lib/names.ts";
import { isQuestion, openQuestions } from "./questions.ts";

/** How long a tool waits for an answer: older questions need not be looked for. */
const ANSWER_MS = 10 * 60_000;
const LATEST_MESSAGES = 50;

/**
 * What tools ask the person right now. The server does not list it, so it is looked for in conversations
 * in which something was written lately, and when something changes there.
 */
export function useOpenQuestions(me: Account): readonly Message[] {
  const client = useClient();
  const isOnline = useStatus() === "online";
  const hasChats = useChatIds().length > 0;
  const [byChat, setByChat] = useState<Readonly<Record<string, readonly Message[]>>>({});
  const known = useRef(byChat);
  known.current = byChat;
  useEffect(() => {
    if (!isOnline || !hasChats) return;
    const check = async (chatId: string) => {
      const { items } = await client.getChatHistory({ chat_id: chatId, limit: LATEST_MESSAGES });
      const open = openQuestions(items, me).filter(isFresh);
      setByChat((all) => ({ ...all, [chatId]: open }));
    };
    // What fails is looked for again with the next change.
    const checkAll = (ids: readonly string[]) => {
      for (const id of ids) check(id).catch(() => {});
    };
    checkAll(
      client.model.get("chats").filter((id) => isRecent(client.model.get(`chat:${id}`), me)),
    );
    const unsubscribes = [
      client.on("events.messageNew", ({ params }) => {
        if (isMyAgent(params.sender, me) && isQuestion(params)) checkAll([params.conversation_id]);
      }),
      client.on("events.toolCallUpdated", () => {
        const ids = Object.keys(known.current);
        checkAll(ids.filter((id) => (known.current[id] ?? []).length > 0));
      }),
    ];
    return () => {
      for (const unsubscribe of unsubscribes) unsubscribe();
    };
  }, [client, isOnline, hasChats, me]);
  return Object.values(byChat).flat();
}

interface ListedChat {
  last_message: { created_at: string } | null;
  participants: readonly Account[];
}

const isFresh = ({ created_at }: { created_at: string }) =>
  Date.parse(created_at) > Date.now() - ANSWER_MS;

const isRecent = (chat: ListedChat | null, me: Account) =>
  chat?.last_message != null &&
  isFresh(chat.last_message) &&
  chat.participants.some((each) => isMyAgent(each, me));
