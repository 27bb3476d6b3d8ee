import type { Account } from "@parley/protocol";
import type { LocalFile, LocalMessage } from "../types.ts";
import type { State } from "./state.ts";
import { setEntry, share } from "./structural-sharing.ts";

/** What happens to the caller's messages from writing them until they are in the window. */
export type OutboxAction =
  | { type: "queued"; message: LocalMessage }
  /** The server has accepted the message. */
  | { type: "sent"; clientMsgId: string; message: LocalMessage }
  | {
      type: "failed";
      chatId: string;
      clientMsgId: string;
      failure: string;
      refusal?: LocalMessage["refusal"];
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
    };

type FileChange = Extract<OutboxAction, { type: "fileChanged" }>;

export function reduceOutbox(state: State, action: OutboxAction): State {
  switch (action.type) {
    case "queued":
      return updateEntries(state, action.message.conversation_id, (entries) =>
        insertByTime(entries, action.message),
      );
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
            ? { ...asFailed(each, action), ...(action.isRejected && { isRejected: true }) }
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
  }
}

/** Adds a message before unsent ones that were written later: it may come from another tab. */
function insertByTime(entries: readonly LocalMessage[], message: LocalMessage): LocalMessage[] {
  // The server's clock, which dates sent messages, may differ from this one.
  const isLater = ({ delivery, created_at }: LocalMessage) =>
    delivery !== "sent" && created_at > message.created_at;
  const later = entries.findIndex(isLater);
  return entries.toSpliced(later < 0 ? entries.length : later, 0, message);
}

const isEntry = ({ client_msg_id }: LocalMessage, id: string) => client_msg_id === id;

const asFailed = (
  { refusal: _, ...message }: LocalMessage,
  { failure, refusal }: { failure: string; refusal?: LocalMessage["refusal"] },
): LocalMessage => ({ ...message, delivery: "failed", failure, ...(refusal && { refusal }) });

function asSending(failed: LocalMessage): LocalMessage {
  const { failure: _, refusal: __, isRejected: ___, ...message } = failed;
  const files = message.files.map(({ error: ____, ...file }) => file);
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

function updateEntries(
  state: State,
  chatId: string,
  change: (entries: readonly LocalMessage[]) => readonly LocalMessage[],
): State {
  const entries = change(state.outbox[chatId] ?? []);
  const outbox = setEntry(state.outbox, chatId, entries.length > 0 ? entries : undefined);
  return { ...state, outbox };
}

/** Sets the sender of messages that were written before the caller's account was known. */
export function setSender(outbox: State["outbox"], sender: Account): State["outbox"] {
  const withSender = (message: LocalMessage) =>
    message.sender.username === "" ? { ...message, sender } : message;
  const entries = Object.entries(outbox).map(([id, all]) => [id, all.map(withSender)]);
  return share(outbox, Object.fromEntries(entries));
}

/** Fails the unsent messages of a conversation. Sent ones leave the outbox: the server has them. */
export function failUnsent(
  outbox: State["outbox"],
  chatId: string,
  failure: string,
): State["outbox"] {
  const failed = unsentOf(outbox)[chatId]?.map((message) => asFailed(message, { failure }));
  return setEntry(outbox, chatId, failed);
}

/** The outbox without messages that the server has accepted. */
export function unsentOf(outbox: State["outbox"]): State["outbox"] {
  const unsent = Object.entries(outbox)
    .map(([id, entries]) => [id, entries.filter(({ delivery }) => delivery !== "sent")] as const)
    .filter(([, entries]) => entries.length > 0);
  return Object.fromEntries(unsent);
}

/**
 * The outbox without messages of a conversation that it need not show: those that are in the window
 * or the latest of the conversation, and sent ones if they were deleted, if no window is loaded, or
 * if the window's counter has passed them: the window then has them, or they were deleted.
 */
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
