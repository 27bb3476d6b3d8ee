import type { InputOf } from "@parley/protocol";
import { NOBODY } from "../rules/accounts.ts";
import type { AccountRecord } from "../store/accounts.ts";
import type { ReadTx, Store } from "../store/store.ts";
import type { Updates } from "../store/updates.ts";
import { fitting } from "./pagination.ts";

/** The state that a client has when it begins to receive events. */
export type StartPoint = Awaited<ReturnType<typeof readStartPoint>>;

export const readStartPoint = (
  { store }: { store: Pick<Store, "read"> },
  { id }: AccountRecord,
  token: { kind: "session" | "agent"; id: string },
) =>
  store.read(async (tx) => ({
    /** Whether the session has ended, the token was revoked, or its person suspended, meanwhile. */
    isEnded:
      token.kind === "agent"
        ? !(await tx.isAgentTokenValid(token.id))
        : await tx.hasSessionEnded(token.id),
    conversations: await tx.counters(id),
    history_id: await tx.historyId(),
  }));

/** Which conversations changed since the client last looked, and the changes that no conversation has. */
export async function readChangesSince(
  tx: ReadTx,
  viewerId: number,
  { known, accounts_since, own_since }: InputOf<"getUpdates">,
) {
  const { accounts, ...names } = await tx.renamedSince(viewerId, accounts_since);
  const { hidden, ...own } = await tx.hiddenSince(viewerId, own_since);
  // Messages that were hidden after the end of this page may be on the next one again.
  const { states, ...views } = await tx.chatStatesSince(viewerId, own_since, own.seq);
  const counters = known ? await tx.counters(viewerId) : [];
  const unlisted = new Set(known && (await tx.unlistedChats(viewerId)));
  const { new: added, ...compared } = compareCounters(counters, known ?? {});
  return {
    ...compared,
    new: added.filter(({ conversation_id }) => !unlisted.has(conversation_id)),
    accounts,
    accounts_seq: names.seq,
    hidden,
    states: states.map(({ own_seq: _, ...state }) => state),
    own_seq: views.seq,
    blocked: await tx.blockList(viewerId),
    has_more: names.has_more || own.has_more || views.has_more,
  };
}

/**
 * The part of a page of updates that has at most so many bytes of messages, and at least one message.
 * It ends between values of the counter. Ids of deleted messages may be earlier than their change.
 */
export function fittingUpdates(updates: Updates, since: number, bytes: number): Updates {
  const { messages } = updates;
  const kept = fitting(messages, bytes).length;
  const seq = messages[kept - 1]?.version ?? since;
  if (kept === messages.length) return updates;
  // On the last page, the messages that stream follow those that changed. Deltas show what they lack.
  if (seq <= since || (messages[kept]?.version ?? 0) <= since) {
    return { ...updates, messages: messages.slice(0, kept) };
  }
  return {
    ...updates,
    messages: messages.filter(({ version }) => version > since && version <= seq),
    changes: updates.changes.filter((change) => change.seq <= seq),
    seq,
    has_more: true,
  };
}

function compareCounters(counters: StartPoint["conversations"], known: Record<string, number>) {
  const current = counters.map(({ uuid, seq }) => ({ conversation_id: uuid, seq }));
  const ids = new Set(current.map(({ conversation_id }) => conversation_id));
  return {
    ahead: current.filter(({ conversation_id, seq }) => seq > (known[conversation_id] ?? seq)),
    behind: current.filter(({ conversation_id, seq }) => seq < (known[conversation_id] ?? seq)),
    new: current.filter(({ conversation_id }) => known[conversation_id] === undefined),
    gone: Object.keys(known).filter((id) => !ids.has(id)),
  };
}

/** What a bus reads from the store when changes arrive late or not at all. */
export const storedState = (store: Pick<Store, "read">) => ({
  /** Reads the current conversation, and which of these accounts participate in it. */
  readConversation: (uuid: string, users: readonly string[]) =>
    store.read(async (tx) => {
      const conversation = await tx.conversation(uuid, NOBODY);
      if (!conversation) return null;
      const participants = await tx.participantsAmong(conversation.id, users);
      return { shared: await tx.sharedConversation(conversation.id), participants };
    }),
  /** Reads the stored text of a message; null when there is no such message. */
  readText: (message: string) =>
    store.read(async (tx) => (await tx.messageViews([message], NOBODY))[0]?.content ?? null),
});
