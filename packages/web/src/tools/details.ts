import type { LocalMessage } from "@parley/client";
import { useClient, useStatus } from "@parley/client/react";
import type { ToolCallDetail } from "@parley/protocol";
import { useEffect, useState } from "react";
import type { Fetching } from "../lib/fetched.ts";
import { useSelf } from "../lib/me.ts";

interface CallDetails extends Fetching {
  find: (callId: string) => ToolCallDetail | undefined;
}

/** Messages are unmounted when they are scrolled out of view: what was fetched is kept. */
const fetched = new Map<string, readonly ToolCallDetail[]>();
const MAX_KEPT = 200;

/**
 * The calls of a message with their arguments, fetched once they are needed, and after each change and
 * connection.
 */
export function useCallDetails(message: LocalMessage, isNeeded: boolean): CallDetails {
  const client = useClient();
  const isOnline = useStatus() === "online";
  const me = useSelf();
  // Only the owner of the agent gets results, so they are kept for each account.
  const key = `${me.username} ${message.id}`;
  const [items, setItems] = useState(() => fetched.get(key));
  const [problem, setProblem] = useState<unknown>(null);
  const [tries, setTries] = useState(0);
  const state = message.tool_calls.map(({ id, status }) => `${id} ${status}`).join();
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new status may come with a result; another try fetches again
  useEffect(() => {
    if (!isNeeded || !isOnline) return;
    let isCurrent = true;
    client.getToolCalls({ message_id: message.id }).then(
      ({ items: found }) => {
        keep(key, found);
        if (isCurrent) setItems(found);
        if (isCurrent) setProblem(null);
      },
      (error: unknown) => isCurrent && setProblem(error),
    );
    return () => {
      isCurrent = false;
    };
  }, [client, key, message.id, isNeeded, isOnline, state, tries]);
  return {
    find: (id) => items?.find((call) => call.id === id),
    problem,
    fetchAgain: () => setTries((before) => before + 1),
  };
}

function keep(key: string, items: readonly ToolCallDetail[]): void {
  fetched.delete(key);
  fetched.set(key, items);
  const [oldest] = fetched.keys();
  if (fetched.size > MAX_KEPT && oldest !== undefined) fetched.delete(oldest);
}
