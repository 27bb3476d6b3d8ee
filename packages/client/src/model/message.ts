import type { EventFrame, Message, ReactionSummary } from "@parley/protocol";
import type { LocalMessage } from "../types.ts";
import { byteLength } from "./stream.ts";
import { share } from "./structural-sharing.ts";

export const asSent = (message: Message): LocalMessage => ({ ...message, delivery: "sent" });

const isStreaming = ({ finalized_at }: Message): boolean => finalized_at === null;

/** What is known of a message, and what was fetched: the later of the two. */
export function later(known: LocalMessage, fetched: Message): LocalMessage {
  const longer =
    isStreaming(known) && isStreaming(fetched) && byteLength(known) > byteLength(fetched)
      ? known.content
      : fetched.content;
  if (fetched.version > known.version) {
    return share(known, asSent({ ...fetched, content: longer }));
  }
  const grew = fetched.version === known.version && isStreaming(known);
  return grew && longer !== known.content ? { ...known, content: longer } : known;
}

type MessageEvent = EventFrame<
  | "events.messageEdited"
  | "events.messageComplete"
  | "events.reactionAdded"
  | "events.reactionRemoved"
>;

/** Which message an event changes. */
export const changedId = ({ params }: MessageEvent): string =>
  "message_id" in params ? params.message_id : params.id;

/** The message after an event that is the next change of its conversation, or is in it already. */
export function changed(
  message: LocalMessage,
  frame: MessageEvent,
  me: string | undefined,
): LocalMessage {
  const version = frame.at?.seq ?? 0;
  if (message.version >= version) return message;
  if (frame.method === "events.messageEdited" || frame.method === "events.messageComplete") {
    return asSent({ ...frame.params, reactions: own(frame.params.reactions, message.reactions) });
  }
  const { emoji, reactor } = frame.params;
  const on = frame.method === "events.reactionAdded";
  const reactions = counted(message.reactions, emoji, on ? 1 : -1, {
    ...(reactor.username === me && { reacted: on }),
  });
  return { ...message, version, reactions };
}

/** Broadcasts do not say which reactions are the caller's own; they are those that were. */
function own(
  reactions: readonly ReactionSummary[],
  before: readonly ReactionSummary[],
): ReactionSummary[] {
  const mine = new Set(before.filter(({ reacted }) => reacted).map(({ emoji }) => emoji));
  return reactions.map((each) => ({ ...each, reacted: mine.has(each.emoji) }));
}

function counted(
  reactions: readonly ReactionSummary[],
  emoji: string,
  step: 1 | -1,
  own: { reacted?: boolean },
): ReactionSummary[] {
  const known = reactions.some((each) => each.emoji === emoji);
  const all = known ? reactions : [...reactions, { emoji, count: 0, reacted: false }];
  return all
    .map((each) => (each.emoji === emoji ? { ...each, ...own, count: each.count + step } : each))
    .filter(({ count }) => count > 0);
}

/** The message with the caller's own reaction set or taken back. */
export function reacted(message: LocalMessage, emoji: string, on: boolean): LocalMessage {
  const is = message.reactions.some((each) => each.emoji === emoji && each.reacted);
  if (is === on) return message;
  const reactions = counted(message.reactions, emoji, on ? 1 : -1, { reacted: on });
  return { ...message, reactions };
}
