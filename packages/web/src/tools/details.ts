import type { LocalMessage } from "@parley/client";
import { useClient } from "@parley/client/react";
import type { ToolCallDetail } from "@parley/protocol";
import { useEffect, useState } from "react";
import { useSelf } from "../lib/me.ts";

interface CallDetails {
  find: (callId: string) => ToolCallDetail | undefined;
  /** Why they could not be fetched; null if they could. */
  problem: unknown;
}

/** Messages are unmounted when they are scrolled out of view: what was fetched is kept. */
const fetched = new Map<string, readonly ToolCallDetail[]>();
const MAX_KEPT = 200;

/** The calls of a message with their arguments, fetched once they are needed and after each change. */
export function useCallDetails(message: LocalMessage, isNeeded: boolean): CallDetails {
  const client = useClient();
  const me = useSelf();
  // Only the owner of the agent gets results, so they are kept for each account.
  const key = `${me.username} ${message.id}`;
  const [items, setItems] = useState(() => fetched.get(key));
  const [problem, setProblem] = useState<unknown>(null);
  const state = message.tool_calls.map(({ id, status }) => `${id} ${status}`).join();
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new status may come with a result
  useEffect(() => {
    if (!isNeeded) return;
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
  }, [client, key, message.id, isNeeded, state]);
  return { find: (id) => items?.find((call) => call.id === id), problem };
}

function keep(key: string, items: readonly ToolCallDetail[]): void {
  fetched.delete(key);
  fetched.set(key, items);
  const [oldest] = fetched.keys();
  if (fetched.size > MAX_KEPT && oldest !== undefined) fetched.delete(oldest);
}
