import type { EventFrame, Message, SharedConversation } from "@parley/protocol";
import { NOBODY } from "../store/accounts.ts";
import type { ReadTx } from "../store/store.ts";
import type { Change, EventChange, LoggedChange } from "./change.ts";

type LoggedEvent = Extract<LoggedChange, { kind: "event" }>;

/**
 * Turns logged changes into changes that can be delivered. The log does not keep the text of messages,
 * so their current text is read. An event about a message that was deleted since becomes its deletion.
 */
export async function replayable(tx: ReadTx, logged: readonly LoggedChange[]): Promise<Change[]> {
  const messages = await shownMessages(tx, logged);
  return logged.map((change) =>
    change.kind === "event"
      ? ({ ...change, data: dataOf(change, messages) } as EventChange as Change)
      : change,
  );
}

async function shownMessages(
  tx: ReadTx,
  logged: readonly LoggedChange[],
): Promise<ReadonlyMap<string, Message>> {
  const ids = logged.flatMap((change) => (change.kind === "event" ? (change.shows ?? []) : []));
  if (ids.length === 0) return new Map();
  const messages = await tx.messageViews([...new Set(ids)], NOBODY);
  return new Map(messages.map((message) => [message.id, message]));
}

function dataOf(change: LoggedEvent, messages: ReadonlyMap<string, Message>): string {
  const { data, shows, name: method, at } = change;
  if (shows === undefined) return data ?? "";
  const message = messages.get(shows);
  if (data === undefined) {
    if (!message) return deletion(change, shows);
    return JSON.stringify({ method, params: asSent(message), at });
  }
  const frame = JSON.parse(data) as EventFrame & { params: Message | SharedConversation };
  if ("last_message" in frame.params) {
    const { last_message } = frame.params;
    const shown = message && last_message && { ...last_message, content: message.content };
    return JSON.stringify({ ...frame, params: { ...frame.params, last_message: shown ?? null } });
  }
  if (!message) return deletion(change, shows);
  return JSON.stringify({ ...frame, params: { ...frame.params, content: message.content } });
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
const deletion = ({ at }: LoggedEvent, id: string) =>
  JSON.stringify({
    method: "events.messageDeleted",
    params: { conversation_id: at?.conversation_id, ids: [id] },
    at,
  });
