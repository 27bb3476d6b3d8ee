import type { EventFrame } from "@parley/protocol";
import type { FinalState, Violation } from "../final-state.ts";

type Counters = Readonly<Record<string, number>>;

/**
 * What one socket heard that was never closed. Counted events come once, in order and without gaps
 * up to the end, and deltas are pieces of what their messages say in the end. A database that lost
 * its power may have lost the last words of an answer that was cut off, or is begun again.
 */
export function checkEvents(
  heard: readonly EventFrame[],
  before: Counters,
  { chats }: Pick<FinalState, "chats">,
  isPowerLost = false,
): Violation[] {
  const counters = new Map(Object.entries(before));
  const violations = heard.flatMap((frame) => checkCounter(frame, counters));
  const behind = chats.filter(({ id, seq }) => counters.get(id) !== seq);
  return [
    ...violations,
    ...behind.map(({ id, seq }) => wrong(`heard ${id} up to ${counters.get(id)}, not ${seq}`)),
    ...checkDeltas(heard, chats, isPowerLost),
  ];
}

const wrong = (what: string): Violation => ({ what, operations: [] });

function checkCounter({ method, at }: EventFrame, counters: Map<string, number>): Violation[] {
  if (!at) return [];
  const { conversation_id, seq } = at;
  const last = counters.get(conversation_id);
  counters.set(conversation_id, seq);
  const isNew = method === "events.conversationNew";
  if (isNew ? last === undefined : seq === (last ?? Number.NaN) + 1) return [];
  return [wrong(`heard ${method} of ${conversation_id} at ${seq} after ${last}`)];
}

function checkDeltas(
  heard: readonly EventFrame[],
  chats: FinalState["chats"],
  isPowerLost: boolean,
): Violation[] {
  const all = chats.flatMap((chat) => chat.messages);
  const messages = new Map(all.map((message) => [message.id, message]));
  const offsets = new Map<string, number>();
  return heard.flatMap((frame) => {
    // A delta may come before the message that it is of; from there on all of them come.
    if (frame.method === "events.messageNew") offsets.delete(frame.params.id);
    if (frame.method !== "events.messageDelta") return [];
    const { id, delta, offset } = frame.params as EventFrame<"events.messageDelta">["params"];
    const message = messages.get(id);
    const content = Buffer.from(message?.content ?? "");
    const bytes = Buffer.from(delta);
    const from = offset - bytes.length;
    const isLater = isPowerLost || from >= (offsets.get(id) ?? 0);
    offsets.set(id, offset);
    if (!message || (isLater && content.subarray(from, offset).equals(bytes))) return [];
    const isBeyond = from >= content.length || message.turn?.error?.message === message.content;
    if (isPowerLost && isBeyond && message.turn?.status === "failed") return [];
    return [wrong(`a delta of ${id} at ${offset} is not of «${content}»: «${delta}»`)];
  });
}
