import type { EventFrame, Message, ReactionSummary, ToolCall } from "@parley/protocol";
import type { LocalMessage } from "../types.ts";
import { byteLength } from "./append-deltas.ts";
import { share } from "./structural-sharing.ts";

/** A message of the server. Older servers and what earlier versions stored lack the newest lists. */
export const asSent = (message: Message): LocalMessage => ({
  ...message,
  files: message.files ?? [],
  tool_calls: message.tool_calls ?? [],
  delivery: "sent",
});

const isStreaming = ({ finalized_at }: Message): boolean => finalized_at === null;

/** The newer of the known and the fetched message; of two streaming ones, with the longer content. */
export function newerMessage(known: LocalMessage, fetched: Message): LocalMessage {
  // The latest message of a conversation in a list may lack the end of its text.
  if (known.excerpt && !fetched.excerpt && fetched.version === known.version) {
    return share(known, asSent(fetched));
  }
  const content =
    isStreaming(known) && isStreaming(fetched) && byteLength(known) > byteLength(fetched)
      ? known.content
      : fetched.content;
  if (fetched.version > known.version) return share(known, asSent({ ...fetched, content }));
  const isSameVersion = fetched.version === known.version && isStreaming(known);
  return isSameVersion && content !== known.content ? { ...known, content } : known;
}

/** Events that change an existing message. */
export type MessageChangeEvent = EventFrame<
  | "events.messageEdited"
  | "events.messageComplete"
  | "events.reactionAdded"
  | "events.reactionRemoved"
  | "events.toolCallUpdated"
>;

export const changedMessageId = ({ params }: MessageChangeEvent): string =>
  "message_id" in params ? params.message_id : params.id;

/**
 * The message after an event that changes it. The event is the next change of the conversation;
 * a message fetched meanwhile may include it already.
 */
export function messageAfter(
  message: LocalMessage,
  frame: MessageChangeEvent,
  me: string | undefined,
): LocalMessage {
  const version = frame.at?.seq ?? 0;
  if (message.version >= version) return message;
  if (frame.method === "events.messageEdited" || frame.method === "events.messageComplete") {
    const reactions = keepReacted(frame.params.reactions, message.reactions);
    return asSent({ ...frame.params, reactions });
  }
  if (frame.method === "events.toolCallUpdated") {
    return { ...message, version, tool_calls: putToolCall(message.tool_calls, frame.params.call) };
  }
  const { emoji, reactor } = frame.params;
  const on = frame.method === "events.reactionAdded";
  const reactions = countReaction(message.reactions, emoji, on ? 1 : -1, {
    ...(reactor.username === me && { reacted: on }),
  });
  return { ...message, version, reactions };
}

/** Replaces the call with the same id, or adds it at the end. */
function putToolCall(calls: readonly ToolCall[], call: ToolCall): ToolCall[] {
  const place = calls.findIndex(({ id }) => id === call.id);
  return place < 0 ? [...calls, call] : calls.with(place, call);
}

/** In events `reacted` is always false: takes it from the known reactions. */
function keepReacted(
  reactions: readonly ReactionSummary[],
  known: readonly ReactionSummary[],
): ReactionSummary[] {
  const own = new Set(known.filter(({ reacted }) => reacted).map(({ emoji }) => emoji));
  return reactions.map((each) => ({ ...each, reacted: own.has(each.emoji) }));
}

function countReaction(
  reactions: readonly ReactionSummary[],
  emoji: string,
  step: 1 | -1,
  own: { reacted?: boolean },
): ReactionSummary[] {
  const isKnown = reactions.some((each) => each.emoji === emoji);
  const all = isKnown ? reactions : [...reactions, { emoji, count: 0, reacted: false }];
  return all
    .map((each) => (each.emoji === emoji ? { ...each, ...own, count: each.count + step } : each))
    .filter(({ count }) => count > 0);
}

/** Adds or removes the caller's own reaction. */
export function setReaction(message: LocalMessage, emoji: string, on: boolean): LocalMessage {
  const isOn = message.reactions.some((each) => each.emoji === emoji && each.reacted);
  if (isOn === on) return message;
  const reactions = countReaction(message.reactions, emoji, on ? 1 : -1, { reacted: on });
  return { ...message, reactions };
}
