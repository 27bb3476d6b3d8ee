import type { Account } from "@parley/protocol";
import type { LocalFile, LocalMessage } from "../types.ts";
import type { OptimisticChange, State } from "./state.ts";
import { setEntry, share } from "./structural-sharing.ts";

/** What the caller does that the server has not confirmed yet. */
export type OutboxAction =
  | { type: "queued"; message: LocalMessage }
  | { type: "sent"; clientMsgId: string; message: LocalMessage }
  | {
      type: "failed";
      chatId: string;
      clientMsgId: string;
      failure: string;
      isRejected: boolean;
    }
  | { type: "requeued"; chatId: string; clientMsgId: string }
  | { type: "dropped"; chatId: string; clientMsgId: string }
  /** A file of an unsent message has another state. */
  | {
      type: "fileChanged";
      chatId: string;
      clientMsgId: string;
      index: number;
      file: LocalFile;
    }
  | { type: "localUrlsRevoked"; fileIds: readonly string[] }
  | { type: "changeStarted"; chatId: string; change: OptimisticChange }
  | { type: "changeEnded"; chatId: string; changeId: string };

type FileChange = Extract<OutboxAction, { type: "fileChanged" }>;

export function reduceOutbox(state: State, action: OutboxAction): State {
  switch (action.type) {
    case "queued":
      return updateEntries(state, action.message.conversation_id, (entries) => [
        ...entries,
        action.message,
      ]);
    case "sent": {
      const { clientMsgId, message } = action;
      const next = updateEntries(state, message.conversation_id, (entries) =>
        entries.map((each) => (isEntry(each, clientMsgId) ? message : each)),
      );
      return { ...next, outbox: removeArrived(next, message.conversation_id) };
    }
    case "failed":
      return updateEntries(state, action.chatId, (entries) =>
        entries.map((each) =>
          isEntry(each, action.clientMsgId)
            ? { ...asFailed(each, action.failure), ...(action.isRejected && { isRejected: true }) }
            : each,
        ),
      );
    case "requeued":
      return updateEntries(state, action.chatId, (entries) => {
        const again = entries.filter((each) => isEntry(each, action.clientMsgId)).map(asSending);
        return [...entries.filter((each) => !isEntry(each, action.clientMsgId)), ...again];
      });
    case "dropped":
      return updateEntries(state, action.chatId, (entries) =>
        entries.filter((each) => !isEntry(each, action.clientMsgId)),
      );
    case "fileChanged":
      return changeFile(state, action);
    case "localUrlsRevoked":
      return { ...state, localUrls: withoutEntries(state.localUrls, action.fileIds) };
    case "changeStarted":
      return updateChanges(state, action.chatId, (changes) => [...changes, action.change]);
    case "changeEnded":
      return updateChanges(state, action.chatId, (changes) =>
        changes.filter(({ changeId }) => changeId !== action.changeId),
      );
  }
}

const isEntry = ({ client_msg_id }: LocalMessage, id: string) => client_msg_id === id;

const asFailed = (message: LocalMessage, failure: string): LocalMessage => ({
  ...message,
  delivery: "failed",
  failure,
});

function asSending({ failure: _, isRejected: __, ...message }: LocalMessage): LocalMessage {
  const files = message.files.map(({ error: ___, ...file }) => file);
  return { ...message, files, delivery: "sending" };
}

/** Once a file is uploaded, its object URL is known by its id: the sent message has that too. */
function changeFile(state: State, action: FileChange): State {
  const { chatId, clientMsgId, index, file } = action;
  const isKnown = state.outbox[chatId]?.some((each) => isUnsent(each, clientMsgId));
  if (!isKnown) return state;
  const next = updateEntries(state, chatId, (entries) =>
    entries.map((each) =>
      isUnsent(each, clientMsgId) ? { ...each, files: each.files.with(index, file) } : each,
    ),
  );
  const { url } = file;
  if (file.status !== "ready" || url === undefined) return next;
  return { ...next, localUrls: setEntry(next.localUrls, file.id, url) };
}

const isUnsent = (entry: LocalMessage, clientMsgId: string) =>
  isEntry(entry, clientMsgId) && entry.delivery !== "sent";

const withoutEntries = <Value>(
  record: Readonly<Record<string, Value>>,
  keys: readonly string[],
): Readonly<Record<string, Value>> =>
  keys.reduce((rest, key) => setEntry(rest, key, undefined), record);

function updateEntries(
  state: State,
  chatId: string,
  change: (entries: readonly LocalMessage[]) => readonly LocalMessage[],
): State {
  const entries = change(state.outbox[chatId] ?? []);
  const outbox = setEntry(state.outbox, chatId, entries.length > 0 ? entries : undefined);
  return { ...state, outbox };
}

function updateChanges(
  state: State,
  chatId: string,
  change: (changes: readonly OptimisticChange[]) => readonly OptimisticChange[],
): State {
  const changes = change(state.optimisticChanges[chatId] ?? []);
  const kept = changes.length > 0 ? changes : undefined;
  return { ...state, optimisticChanges: setEntry(state.optimisticChanges, chatId, kept) };
}

/** Sets the sender of messages that were written before the caller's account was known. */
export function setSender(outbox: State["outbox"], sender: Account): State["outbox"] {
  const withSender = (message: LocalMessage) =>
    message.sender.username === "" ? { ...message, sender } : message;
  const entries = Object.entries(outbox).map(([id, all]) => [id, all.map(withSender)]);
  return share(outbox, Object.fromEntries(entries));
}

/** The outbox with all unsent messages of a conversation failed. */
export function failUnsent(
  outbox: State["outbox"],
  chatId: string,
  failure: string,
): State["outbox"] {
  const failed = unsentOf(outbox)[chatId]?.map((message) => asFailed(message, failure));
  return setEntry(outbox, chatId, failed);
}

/** The outbox without messages that the server has accepted. */
export function unsentOf(outbox: State["outbox"]): State["outbox"] {
  const unsent = Object.entries(outbox)
    .map(([id, entries]) => [id, entries.filter(({ delivery }) => delivery !== "sent")] as const)
    .filter(([, entries]) => entries.length > 0);
  return Object.fromEntries(unsent);
}

/** The outbox without messages that are in the window or are the latest of their conversation. */
export function removeArrived(state: State, chatId: string): State["outbox"] {
  const entries = state.outbox[chatId];
  if (!entries) return state.outbox;
  const { chat, window = null, tombstones } = state.chats[chatId] ?? {};
  const isPast = ({ delivery, seq, id }: LocalMessage) =>
    delivery === "sent" && (!window || window.seq >= seq || tombstones?.has(id));
  const own = [chat?.last_message, ...(window?.items ?? [])].filter(
    (message) => message?.sender.username === state.me?.username,
  );
  const hasArrived = (entry: LocalMessage) =>
    isPast(entry) || own.some((message) => message?.client_msg_id === entry.client_msg_id);
  const rest = entries.filter((entry) => !hasArrived(entry));
  if (rest.length === entries.length) return state.outbox;
  return setEntry(state.outbox, chatId, rest.length > 0 ? rest : undefined);
}
