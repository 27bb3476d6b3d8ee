import type { EventFrame } from "@parley/protocol";
import type { FinalState, Violation } from "../final-state.ts";

type Counters = Readonly<Record<string, number>>;

/**
 * Checks the events of a socket that stayed open. Counted events arrive once, in order, without gaps
 * and up to the final counter. Deltas are parts of the final content of their messages; a crash of the
 * database may lose the last deltas of an answer that is then interrupted or begun again.
 */
export function checkEvents(
  received: readonly EventFrame[],
  before: Counters,
  { chats }: Pick<FinalState, "chats">,
  isDatabaseCrashed = false,
): Violation[] {
  const counters = new Map(Object.entries(before));
  const violations = received.flatMap((frame) => checkCounter(frame, counters));
  const behind = chats.filter(({ id, seq }) => counters.get(id) !== seq);
  return [
    ...violations,
    ...behind.map(({ id, seq }) => wrong(`received ${id} up to ${counters.get(id)}, not ${seq}`)),
    ...checkDeltas(received, chats, isDatabaseCrashed),
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
  return [wrong(`received ${method} of ${conversation_id} at ${seq} after ${last}`)];
}

function checkDeltas(
  received: readonly EventFrame[],
  chats: FinalState["chats"],
  isDatabaseCrashed: boolean,
): Violation[] {
  const all = chats.flatMap((chat) => chat.messages);
  const messages = new Map(all.map((message) => [message.id, message]));
  const offsets = new Map<string, number>();
  return received.flatMap((frame) => {
    // A delta may overtake its message. After the message no delta is missing.
    if (frame.method === "events.messageNew") offsets.delete(frame.params.id);
    if (frame.method !== "events.messageDelta") return [];
    const { id, delta, offset } = frame.params as EventFrame<"events.messageDelta">["params"];
    const message = messages.get(id);
    const content = Buffer.from(message?.content ?? "");
    const bytes = Buffer.from(delta);
    const from = offset - bytes.length;
    const isLater = isDatabaseCrashed || from >= (offsets.get(id) ?? 0);
    offsets.set(id, offset);
    if (!message || (isLater && content.subarray(from, offset).equals(bytes))) return [];
    const isBeyond = from >= content.length || message.turn?.error?.message === message.content;
    if (isDatabaseCrashed && isBeyond && message.turn?.status === "failed") return [];
    return [wrong(`a delta of ${id} at ${offset} is not of «${content}»: «${delta}»`)];
  });
}
