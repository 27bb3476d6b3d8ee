import { useAgents, useClient } from "@parley/client/react";
import type { ToolCallDetail } from "@parley/protocol";
import { useState } from "react";
import { useAction } from "../lib/action.ts";
import { codeOf, concerns, describeError } from "../lib/errors.ts";

interface Decision {
  busy: boolean;
  error: unknown;
  /** The call after the decision, until the event with it arrives; null if nothing was decided. */
  decided: ToolCallDetail | null;
  /** Why the call can only be rejected, as far as it is known from an attempt; null if it is not. */
  refusal: string | null;
  /** Somebody decided it earlier, such as oneself on another device. */
  isLate: boolean;
  decide: (decision: "approve" | "reject", note: string) => Promise<boolean>;
}

/**
 * The card of a decided call disappears, and the next one takes its place. For this time, no further
 * decision is accepted, so that a double click does not decide about a call that nobody has read.
 */
const PAUSE_MS = 700;
let nextDecisionAt = 0;

const decidedHere = new Set<string>();
/** Whether a decision about the call was sent from this window. */
export const isDecidedHere = (callId: string) => decidedHere.has(callId);

/**
 * Decides about a tool call. If it is decided already, finds out how. `onDecided` is called even if the
 * component is gone by then: the event with the decision may arrive before the reply.
 */
export function useDecision(
  callId: string,
  messageId: string,
  onDecided?: (call: ToolCallDetail, isLate: boolean) => void,
): Decision {
  const client = useClient();
  const { busy, error, run } = useAction();
  const [decided, setDecided] = useState<ToolCallDetail | null>(null);
  const [isLate, setLate] = useState(false);
  // What agents may use can change, and with it whether the call can be approved.
  const agents = useAgents();
  const [refused, setRefused] = useState<{ reason: string; agents: unknown } | null>(null);
  const settle = (call: ToolCallDetail, late: boolean) => {
    setDecided(call);
    setLate(late);
    onDecided?.(call, late);
  };
  const decide = async (decision: "approve" | "reject", note: string) => {
    if (Date.now() < nextDecisionAt) return false;
    nextDecisionAt = Number.POSITIVE_INFINITY;
    decidedHere.add(callId);
    const isDone = await run(() => send(decision, note));
    nextDecisionAt = isDone ? Date.now() + PAUSE_MS : 0;
    return isDone;
  };
  async function send(decision: "approve" | "reject", note: string): Promise<void> {
    const input = { call_id: callId, decision, ...(note !== "" && { note }) };
    try {
      settle(await client.decideToolCall(input), false);
    } catch (refusal) {
      if (codeOf(refusal) !== "conflict") throw refusal;
      const { items } = await client.getToolCalls({ message_id: messageId });
      const now = items.find(({ id }) => id === callId);
      if (now && now.status !== "pending") return settle(now, true);
      // The tool has changed, or was taken away: the call can only be rejected.
      if (!concerns(refusal, "decision")) throw refusal;
      setRefused({ reason: describeError(refusal), agents });
      decidedHere.delete(callId);
    }
  }
  const refusal = refused?.agents === agents ? refused.reason : null;
  return { busy, error, decided, isLate, decide, refusal };
}
