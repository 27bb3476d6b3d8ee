import type { Client } from "@parley/client";
import { useClient, useStatus } from "@parley/client/react";
import type { Account, Message, PendingQuestion, PendingToolCall } from "@parley/protocol";
import { createContext, use, useCallback, useEffect, useRef, useState } from "react";
import { isMyAgent } from "../lib/names.ts";
import { isPending } from "./calls.ts";
import { isQuestion } from "./questions.ts";

export interface PendingCalls {
  /** Oldest first; null until they are fetched. */
  items: readonly PendingToolCall[] | null;
  /** What tools ask the person, oldest first. */
  questions: readonly PendingQuestion[];
  /** Why they could not be fetched; null if they could. */
  problem: unknown;
  refresh: () => void;
}

/** The tool calls and questions that wait for the person; set inside of the shell. */
export const PendingContext = createContext<PendingCalls>({
  items: null,
  questions: [],
  problem: null,
  refresh: () => {},
});

export const usePending = () => use(PendingContext);

/** Fetches what waits for the person, after each connection and when something changes it. */
export function usePendingCalls(me: Account): PendingCalls {
  const client = useClient();
  const isOnline = useStatus() === "online";
  const [waiting, setWaiting] = useState<Waiting | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const latest = useRef(waiting);
  latest.current = waiting;
  const requests = useRef(0);
  const refresh = useCallback(() => {
    const request = ++requests.current;
    const isLatest = () => request === requests.current;
    client.getPendingToolCalls().then(
      (found) => {
        if (!isLatest()) return;
        // A node of an earlier version lists no questions.
        setWaiting({ ...NOTHING, ...found });
        setProblem(null);
      },
      (error: unknown) => isLatest() && setProblem(error),
    );
  }, [client]);
  useEffect(() => {
    if (isOnline) refresh();
  }, [isOnline, refresh]);
  useEffect(
    () =>
      watchCalls(client, me, {
        listed: () => latest.current ?? NOTHING,
        onChange: refresh,
      }),
    [client, me, refresh],
  );
  const { items, questions } = waiting ?? { ...NOTHING, items: null };
  return { items, questions: useFresh(questions), problem, refresh };
}

interface Waiting {
  items: readonly PendingToolCall[];
  questions: readonly PendingQuestion[];
}

const NOTHING: Waiting = { items: [], questions: [] };

/** Leaves out the questions that no tool waits for any more, as soon as that is so. */
function useFresh(questions: readonly PendingQuestion[]): readonly PendingQuestion[] {
  const [, setNow] = useState(0);
  const fresh = questions.filter(({ expires_at }) => Date.parse(expires_at) > Date.now());
  const ends = Math.min(...fresh.map(({ expires_at }) => Date.parse(expires_at)));
  useEffect(() => {
    if (ends === Number.POSITIVE_INFINITY) return;
    const timer = setTimeout(() => setNow(Date.now()), ends - Date.now() + 1);
    return () => clearTimeout(timer);
  }, [ends]);
  return fresh;
}

interface Watcher {
  listed: () => Waiting;
  onChange: () => void;
}

function watchCalls(client: Client, me: Account, { listed, onChange }: Watcher): () => void {
  const checkMessage = ({ params }: { params: Message }) => {
    const asks = isMyAgent(params.sender, me) && isQuestion(params);
    if (asks || waitsFor(params, me)) onChange();
  };
  const isListed = (callId: string) => listed().items.some(({ call }) => call.id === callId);
  const asksIn = (chatId: string | undefined) =>
    listed().questions.some(({ conversation_id }) => conversation_id === chatId);
  const unsubscribes = [
    client.on("events.messageNew", checkMessage),
    client.on("events.messageComplete", checkMessage),
    // An answer is a use of the form.
    client.on("events.messageEdited", ({ params }) => {
      if (asksIn(params.conversation_id)) onChange();
    }),
    client.on("events.toolCallUpdated", ({ params, at }) => {
      const isWaiting = isListed(params.call.id) || isPending(params.call);
      if (isWaiting || asksIn(at?.conversation_id)) onChange();
    }),
    client.on("events.messageDeleted", onChange),
  ];
  return () => {
    for (const unsubscribe of unsubscribes) unsubscribe();
  };
}

/** Whether a complete message of one's own agent waits for a decision. */
export const waitsFor = ({ sender, tool_calls, finalized_at }: Message, me: Account) =>
  finalized_at !== null && isMyAgent(sender, me) && (tool_calls ?? []).some(isPending);
