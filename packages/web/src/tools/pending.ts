import type { Client } from "@parley/client";
import { useClient, useStatus } from "@parley/client/react";
import type { Account, Message, PendingToolCall } from "@parley/protocol";
import { createContext, use, useCallback, useEffect, useRef, useState } from "react";
import { isMyAgent } from "../lib/names.ts";
import { isPending } from "./calls.ts";
import { useOpenQuestions } from "./open-questions.ts";

export interface PendingCalls {
  /** Oldest first; null until they are fetched. */
  items: readonly PendingToolCall[] | null;
  /** Messages in which tools ask the person something. */
  questions: readonly Message[];
  /** Why they could not be fetched; null if they could. */
  problem: unknown;
  refresh: () => void;
}

/** The tool calls that wait for the person; set inside of the shell. */
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
  const [items, setItems] = useState<readonly PendingToolCall[] | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  const latest = useRef(items);
  latest.current = items;
  const requests = useRef(0);
  const refresh = useCallback(() => {
    const request = ++requests.current;
    const isLatest = () => request === requests.current;
    client.getPendingToolCalls().then(
      ({ items: found }) => {
        if (!isLatest()) return;
        setItems(found);
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
        isListed: (callId) => latest.current?.some(({ call }) => call.id === callId) ?? false,
        onChange: refresh,
      }),
    [client, me, refresh],
  );
  return { items, questions: useOpenQuestions(me), problem, refresh };
}

interface Watcher {
  isListed: (callId: string) => boolean;
  onChange: () => void;
}

function watchCalls(client: Client, me: Account, { isListed, onChange }: Watcher): () => void {
  const checkMessage = ({ params }: { params: Message }) => {
    if (waitsFor(params, me)) onChange();
  };
  const unsubscribes = [
    client.on("events.messageNew", checkMessage),
    client.on("events.messageComplete", checkMessage),
    client.on("events.toolCallUpdated", ({ params }) => {
      if (isListed(params.call.id) || isPending(params.call)) onChange();
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
