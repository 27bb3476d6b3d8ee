import type { Message, SharedConversation } from "@parley/protocol";
import { NOBODY } from "../store/accounts.ts";
import type { ReadTx } from "../store/store.ts";
import type { Change, EventChange, LoggedChange } from "./change.ts";

type LoggedEvent = Extract<LoggedChange, { kind: "event" }>;

/**
 * Turns logged changes into changes again. The log keeps references to messages and conversations:
 * these are shown as they are now, and a message that was deleted since becomes its deletion.
 */
export async function replayable(tx: ReadTx, logged: readonly LoggedChange[]): Promise<Change[]> {
  const messages = await shownMessages(tx, logged);
  const changes: Change[] = [];
  for (const change of logged) {
    if (change.kind !== "event") changes.push(change);
    else
      changes.push({
        ...change,
        data: await dataOf(tx, change, messages),
      } as EventChange as Change);
  }
  return changes;
}

async function shownMessages(
  tx: ReadTx,
  logged: readonly LoggedChange[],
): Promise<ReadonlyMap<string, Message>> {
  const ids = logged.flatMap((change) => {
    const shows = change.kind === "event" ? change.shows : undefined;
    return shows && "message" in shows ? [shows.message] : [];
  });
  if (ids.length === 0) return new Map();
  const messages = await tx.messageViews([...new Set(ids)], NOBODY);
  return new Map(messages.map((message) => [message.id, message]));
}

async function dataOf(
  tx: ReadTx,
  change: LoggedEvent,
  messages: ReadonlyMap<string, Message>,
): Promise<string> {
  const { data, shows, name: method, at } = change;
  if (data !== undefined) return data;
  if (shows && "message" in shows) {
    const params = messages.get(shows.message);
    return params ? JSON.stringify({ method, params, at }) : deletion(change, shows.message);
  }
  const params = await shownConversation(tx, change);
  return JSON.stringify({ method, params, at });
}

/** Takes the place of an event about a message that is gone: the counter leaves no gap. */
const deletion = ({ at }: LoggedEvent, id: string) =>
  JSON.stringify({
    method: "events.messageDeleted",
    params: { conversation_id: at?.conversation_id, ids: [id] },
    at,
  });

/** The conversation with the counter of the event: later events are still to come. */
async function shownConversation(
  tx: ReadTx,
  { shows, at, delivery }: LoggedEvent,
): Promise<SharedConversation | null> {
  if (!shows || !("conversation" in shows) || !at) return null;
  const conversation = await tx.conversation(shows.conversation, NOBODY);
  if (!conversation) return null;
  const shared = { ...(await tx.sharedConversation(conversation.id)), seq: at.seq };
  if (delivery !== "counted") return shared;
  const query = {
    conversationId: conversation.id,
    after: at.seq - 1,
    before: at.seq + 1,
    limit: 1,
  };
  return Object.assign(shared, { changes: await tx.conversationChanges(query) });
}
