import type { Account } from "@parley/protocol";
import type { LocalMessage, MessageWindow } from "../types.ts";
import { reacted } from "./message.ts";
import type { Change, State, Window } from "./state.ts";
import { put, share } from "./structural-sharing.ts";

export type OutboxAction =
  | { type: "queued"; message: LocalMessage }
  | { type: "sent"; clientMsgId: string; message: LocalMessage }
  | { type: "failed"; chatId: string; clientMsgId: string; failure: string }
  | { type: "requeued"; chatId: string; clientMsgId: string }
  | { type: "dropped"; chatId: string; clientMsgId: string }
  | { type: "changing"; chatId: string; change: Change }
  | { type: "changed"; chatId: string; token: number };

export function reduceOutbox(state: State, action: OutboxAction): State {
  switch (action.type) {
    case "queued":
      return withEntries(state, action.message.conversation_id, (entries) => [
        ...entries,
        action.message,
      ]);
    case "sent":
      return arrived(
        withEntries(state, action.message.conversation_id, (entries) =>
          entries.map((each) => (isEntry(each, action.clientMsgId) ? action.message : each)),
        ),
        action.message.conversation_id,
      );
    case "failed":
      return withEntries(state, action.chatId, (entries) =>
        entries.map((each) =>
          isEntry(each, action.clientMsgId)
            ? { ...each, delivery: "failed", failure: action.failure }
            : each,
        ),
      );
    case "requeued":
      return withEntries(state, action.chatId, (entries) => {
        const again = entries.filter((each) => isEntry(each, action.clientMsgId)).map(asSending);
        return [...entries.filter((each) => !isEntry(each, action.clientMsgId)), ...again];
      });
    case "dropped":
      return withEntries(state, action.chatId, (entries) =>
        entries.filter((each) => !isEntry(each, action.clientMsgId)),
      );
    case "changing":
      return withChanges(state, action.chatId, (changes) => [...changes, action.change]);
    case "changed":
      return withChanges(state, action.chatId, (changes) =>
        changes.filter(({ token }) => token !== action.token),
      );
  }
}

const isEntry = ({ client_msg_id }: LocalMessage, id: string) => client_msg_id === id;

function asSending({ failure: _, ...message }: LocalMessage): LocalMessage {
  return { ...message, delivery: "sending" };
}

function withEntries(
  state: State,
  chatId: string,
  change: (entries: readonly LocalMessage[]) => readonly LocalMessage[],
): State {
  const entries = change(state.outbox[chatId] ?? []);
  return { ...state, outbox: put(state.outbox, chatId, entries.length > 0 ? entries : undefined) };
}

function withChanges(
  state: State,
  chatId: string,
  change: (changes: readonly Change[]) => readonly Change[],
): State {
  const changes = change(state.changes[chatId] ?? []);
  return {
    ...state,
    changes: put(state.changes, chatId, changes.length > 0 ? changes : undefined),
  };
}

/** Written before it was known who writes. */
export function signed(outbox: State["outbox"], sender: Account): State["outbox"] {
  const sign = (message: LocalMessage) =>
    message.sender.username === "" ? { ...message, sender } : message;
  const signedOnes = Object.entries(outbox).map(([id, entries]) => [id, entries.map(sign)]);
  return share(outbox, Object.fromEntries(signedOnes));
}

/** The outbox without what the server has accepted. */
export function unsentOf(outbox: State["outbox"]): State["outbox"] {
  const unsent = Object.entries(outbox)
    .map(([id, entries]) => [id, entries.filter(({ delivery }) => delivery !== "sent")] as const)
    .filter(([, entries]) => entries.length > 0);
  return Object.fromEntries(unsent);
}

const arrived = (state: State, chatId: string): State => ({
  ...state,
  outbox: withoutArrived(state, chatId),
});

/** The outbox without what the conversation itself shows by now. */
export function withoutArrived(state: State, chatId: string): State["outbox"] {
  const entries = state.outbox[chatId];
  if (!entries) return state.outbox;
  const { chat, window = null, gone } = state.chats[chatId] ?? {};
  const isCertain = ({ delivery, seq, id }: LocalMessage) =>
    delivery === "sent" && (!window || window.seq >= seq || gone?.has(id));
  const mine = [chat?.last_message, ...(window?.items ?? [])].filter(
    (message) => message?.sender.username === state.me?.username,
  );
  const isShown = (entry: LocalMessage) =>
    isCertain(entry) || mine.some((message) => message?.client_msg_id === entry.client_msg_id);
  const left = entries.filter((entry) => !isShown(entry));
  if (left.length === entries.length) return state.outbox;
  return put(state.outbox, chatId, left.length > 0 ? left : undefined);
}

const NOT_LOADED: MessageWindow = {
  items: [],
  changes: [],
  hasOlder: false,
  hasNewer: false,
  loaded: false,
};

/** A conversation's messages as they are shown: with what is still on its way. */
export function shownMessages(
  window: Window | null,
  outbox: readonly LocalMessage[] = [],
  changes: readonly Change[] = [],
): MessageWindow {
  if (!window && outbox.length === 0) return NOT_LOADED;
  const items = window?.items ?? [];
  return {
    items: changes.reduce(withChange, outbox.length > 0 ? [...items, ...outbox] : items),
    changes: window?.changes ?? NOT_LOADED.changes,
    hasOlder: window?.floor != null,
    hasNewer: window?.ceiling != null,
    loaded: window !== null,
  };
}

function withChange(items: readonly LocalMessage[], change: Change): readonly LocalMessage[] {
  if (change.kind === "remove") return items.filter(({ id }) => !change.ids.includes(id));
  return items.map((message) => {
    if (message.id !== change.id) return message;
    if (change.kind === "react") return reacted(message, change.emoji, change.on);
    return { ...message, content: change.content, edited_at: change.at };
  });
}
