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
      const open = openQuestions(items, me);
      setByChat((all) => ({ ...all, [chatId]: open }));
    };
    // What fails is looked for again with the next change.
    const checkSoon = (chatId: string) => void check(chatId).catch(() => {});
    const hasOpen = (chatId: string) => (known.current[chatId] ?? []).length > 0;
    const checkAgain = (chatId: string | undefined) => {
      if (chatId !== undefined && hasOpen(chatId)) checkSoon(chatId);
    };
    for (const id of client.model.get("chats")) {
      if (hasOpen(id) || isRecent(client.model.get(`chat:${id}`), me)) checkSoon(id);
    }
    const unsubscribes = [
      client.on("events.messageNew", ({ params }) => {
        if (isMyAgent(params.sender, me) && isQuestion(params)) checkSoon(params.conversation_id);
      }),
      client.on("events.messageEdited", ({ params }) => checkAgain(params.conversation_id)),
      client.on("events.messageDeleted", ({ at }) => checkAgain(at?.conversation_id)),
      client.on("events.toolCallUpdated", ({ at }) => checkAgain(at?.conversation_id)),
    ];
    return () => {
      for (const unsubscribe of unsubscribes) unsubscribe();
    };
  }, [client, isOnline, hasChats, me]);
  return useFresh(Object.values(byChat).flat());
}

/** Leaves out the questions that nobody waits for any more, as soon as that is so. */
function useFresh(questions: readonly Message[]): readonly Message[] {
  const [, setNow] = useState(0);
  const fresh = questions.filter(isFresh);
  const ends = Math.min(...fresh.map(({ created_at }) => Date.parse(created_at) + ANSWER_MS));
  useEffect(() => {
    if (ends === Number.POSITIVE_INFINITY) return;
    const timer = setTimeout(() => setNow(Date.now()), ends - Date.now() + 1);
    return () => clearTimeout(timer);
  }, [ends]);
  return fresh;
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
