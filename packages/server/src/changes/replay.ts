import type { EventFrame, Message, SharedConversation } from "@parley/protocol";
import { NOBODY } from "../rules/accounts.ts";
import { excerptOf } from "../rules/excerpt.ts";
import type { Change, EventChange, LoggedChange } from "./change.ts";
import type { TextReads } from "./log.ts";

type LoggedEvent = Extract<LoggedChange, { kind: "event" }>;

/**
 * Turns logged changes into changes that can be delivered. The log does not keep the text of messages,
 * so their current text is read. An event about a message that was deleted since becomes its deletion.
 */
export async function replayable(tx: TextReads, logged: readonly LoggedChange[]) {
  const ids = logged.flatMap((change) => (change.kind === "event" ? (change.shows ?? []) : []));
  const shown = ids.length === 0 ? [] : await tx.messageViews([...new Set(ids)], NOBODY);
  const messages = new Map(shown.map((message) => [message.id, message]));
  return logged.map(
    (change): Change => (change.kind === "event" ? replayed(change, messages) : change),
  );
}

function replayed(change: LoggedEvent, messages: ReadonlyMap<string, Message>): EventChange {
  const { data, shows, name: method, at } = change;
  if (shows === undefined) return { ...change, data: data ?? "" };
  const message = messages.get(shows);
  const frame = data && (JSON.parse(data) as EventFrame & { params: Message | SharedConversation });
  if (frame && "last_message" in frame.params) {
    const { last_message } = frame.params;
    const shown =
      message && last_message && excerptOf({ ...last_message, content: message.content });
    const params = { ...frame.params, last_message: shown ?? null };
    return { ...change, data: JSON.stringify({ ...frame, params }) };
  }
  if (!message) return deletion(change, shows);
  const params = frame ? { ...frame.params, content: message.content } : asSent(message);
  return { ...change, data: JSON.stringify({ ...(frame || { method, at }), params }) };
}

/**
 * The message as it was first sent. Events for its later changes follow: if the message already had a
 * reaction, a client would count it twice, or not notice that it is its own.
 */
const asSent = (message: Message): Message => ({
  ...message,
  version: message.seq,
  edited_at: null,
  reactions: [],
  uses: [],
  tool_calls: [],
});

/** Replaces an event about a deleted message, so that the counter has no gap. */
function deletion(change: LoggedEvent, id: string): EventChange {
  const { at } = change;
  const name = "events.messageDeleted";
  const params = { conversation_id: at?.conversation_id, ids: [id] };
  return { ...change, name, data: JSON.stringify({ method: name, params, at }) };
}
