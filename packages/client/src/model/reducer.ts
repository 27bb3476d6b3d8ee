import type { Account, AgentProfile, EventFrame, Message, OutputOf } from "@parley/protocol";
import type { Status } from "../types.ts";
import { type Accounts, underNewestNames, withAccountsIn } from "./accounts.ts";
import { doubtful, forgotten, hidden, withRead } from "./chat.ts";
import { onChat, onMessage, placed, withoutChat } from "./chats.ts";
import { afterEvent, identified } from "./events.ts";
import { later } from "./message.ts";
import { type OutboxAction, reduceOutbox, unsentOf } from "./outbox.ts";
import { adopted, type Snapshot } from "./snapshot.ts";
import { type Cached, type ChatState, initialState, type State } from "./state.ts";
import { released } from "./streaming.ts";
import { put, share } from "./structural-sharing.ts";
import { withoutTyping } from "./typing.ts";
import {
  type HistoryPage,
  joined,
  onWindows,
  openedWindow,
  windowAround,
  withChanges,
  withMessages,
  withNewer,
  withOlder,
} from "./window.ts";

type UpdatesPage = Omit<Extract<OutputOf<"getUpdates">, { messages: unknown }>, "history_id">;

/** Servers of an earlier version say less. */
type Overview = Partial<Extract<OutputOf<"getUpdates">, { gone: unknown }>>;

export type Action =
  | { type: "status"; status: Status }
  | { type: "me"; me: Account }
  /** The server's history; a copy of another one is dropped. */
  | { type: "historyId"; historyId: string }
  /** What was fetched is of a history that the server no longer has. */
  | { type: "copyDropped" }
  | { type: "event"; frame: EventFrame }
  /** New names and what was hidden, in all conversations. */
  | { type: "overview"; page: Overview }
  /** Conversations as the server has them; `answers` are the doubts when they were asked for. */
  | { type: "snapshots"; snapshots: readonly Snapshot[]; answers?: number }
  /** What has changed since a value of the counter. */
  | { type: "updates"; chatId: string; page: UpdatesPage; since: number }
  /** A page of messages; `since` is the counter when it was asked for. */
  | { type: "history"; chatId: string; page: HistoryPage; since: number; before?: string }
  /** A page from further back: around a message, or the next one in a direction from a message. */
  | { type: "aside"; chatId: string; page: HistoryPage; since: number; from?: AsideEdge }
  | { type: "asideClosed"; chatId: string }
  /** What is loaded of a conversation is so far behind that it is loaded anew. */
  | { type: "unloaded"; chatId: string }
  /** What was shown the last time. */
  | { type: "restored"; cached: Cached }
  | { type: "message"; message: Message }
  | { type: "chatGone"; chatId: string; seq?: number }
  | { type: "messagesGone"; chatId: string; ids: readonly string[] }
  | { type: "read"; chatId: string; seq: number }
  /** The server knows that the caller has read so far, or does not want to know. */
  | { type: "readTold"; chatId: string; seq: number }
  | { type: "typingEnded"; chatId?: string; username?: string }
  | { type: "agents"; agents: readonly AgentProfile[] }
  | { type: "drafts"; drafts: Readonly<Record<string, string>> }
  | { type: "reset"; status: Status }
  | OutboxAction;

export interface AsideEdge {
  id: string;
  direction: "older" | "newer";
}

/** The live model: what is known, and what comes of it when something is heard or done. */
export function reduce(state: State, action: Action): State {
  const accounts = withAccountsIn(state.accounts, action);
  const known = accounts === state.accounts ? state : withAccounts(state, accounts);
  return released(step(known, underNewestNames(accounts, action)));
}

/** A new name is the account's wherever it stands. */
function withAccounts(state: State, accounts: Accounts): State {
  const isRenamed = ([username, { version }]: [string, Account]) =>
    version > (state.accounts[username]?.version ?? version);
  const isNew = Object.entries(accounts).some(isRenamed);
  return { ...(isNew ? underNewestNames(accounts, state) : state), accounts };
}

function step(state: State, action: Action): State {
  switch (action.type) {
    case "status":
      return { ...state, status: action.status };
    case "me":
      return identified(state, action.me);
    case "historyId":
      return inHistory(state, action.historyId);
    case "copyDropped":
      return withoutCopy(state);
    case "event":
      return afterEvent(state, action.frame);
    case "overview":
      return overviewed(state, action.page);
    case "snapshots":
      return action.snapshots.reduce((next, each) => known(next, each, action.answers), state);
    case "updates":
      return updated(state, action);
    case "history":
      return loaded(state, action);
    case "aside":
      return loadedAside(state, action);
    case "asideClosed":
      return onChat(state, action.chatId, (chat) => (chat.aside ? { ...chat, aside: null } : chat));
    case "unloaded":
      return onChat(state, action.chatId, (chat) => ({ ...chat, window: null, aside: null }));
    case "restored":
      return restored(state, action.cached);
    case "message":
      return fetched(state, action.message);
    case "chatGone":
      return withoutChat(state, action.chatId, action.seq);
    case "messagesGone":
      return onChat(state, action.chatId, (chat) => hidden(chat, action.ids, name(state)));
    case "read":
      return onChat(
        { ...state, reading: put(state.reading, action.chatId, action.seq) },
        action.chatId,
        (chat) => withRead(chat, name(state) ?? "", action.seq, name(state)),
      );
    case "readTold": {
      const isLater = (state.reading[action.chatId] ?? 0) > action.seq;
      return isLater ? state : { ...state, reading: put(state.reading, action.chatId, undefined) };
    }
    case "typingEnded":
      return { ...state, typing: withoutTyping(state.typing, action) };
    case "agents":
      return { ...state, agents: share(state.agents, action.agents) };
    case "drafts":
      return { ...state, drafts: action.drafts };
    case "reset":
      return initialState(action.status);
    default:
      return reduceOutbox(state, action);
  }
}

const name = ({ me }: State) => me?.username;

function inHistory(state: State, historyId: string): State {
  const { historyId: known } = state;
  return { ...(known === null || known === historyId ? state : withoutCopy(state)), historyId };
}

/** Only what the caller has written and not sent yet stays. */
const withoutCopy = ({ status, me, agents, drafts, outbox }: State): State => ({
  ...initialState(status),
  me,
  agents,
  drafts,
  outbox: unsentOf(outbox),
});

function restored(state: State, { me, chats, own: seq, ...cached }: Cached): State {
  const next = chats.reduce(
    (each, { chat, window }) => {
      const met = known(each, chat);
      return window ? onChat(met, chat.id, (shown) => ({ ...shown, window })) : met;
    },
    identified(state, me),
  );
  const { historyId, accountsSeq, agents, reading } = cached;
  return { ...next, historyId, accountsSeq, agents, reading, own: { seq, heard: seq ?? 0 } };
}

function known(state: State, snapshot: Snapshot, answers?: number): State {
  const { id, seq } = snapshot;
  if (seq < (state.left[id] ?? 0)) return state;
  const chat = state.chats[id]
    ? adopted(state.chats[id], snapshot, id in state.reading)
    : firstMet(state, snapshot);
  const answered = Math.max(chat.answered, answers ?? 0);
  return placed(state, id, answered === chat.answered ? chat : { ...chat, answered });
}

/** Something may have happened to it before it was known. */
function firstMet(state: State, snapshot: Snapshot): ChatState {
  const chat = adopted(undefined, snapshot);
  const heard = Math.max(snapshot.seq, state.heard[snapshot.id] ?? 0);
  const isOlder = snapshot.own_seq < state.own.heard;
  return { ...(isOlder ? doubtful(chat) : chat), heard };
}

function overviewed(state: State, page: Overview): State {
  const { accounts_seq, own_seq } = page;
  const later = (known: number | null, told = known) =>
    told === null ? null : Math.max(known ?? 0, told);
  const seq = later(state.own.seq, own_seq);
  const own = { seq, heard: Math.max(state.own.heard, seq ?? 0) };
  const accountsSeq = later(state.accountsSeq, accounts_seq);
  return (page.hidden ?? []).reduce(
    (next, { conversation_id, ids }) =>
      onChat(next, conversation_id, (chat) => hidden(chat, ids, name(state), own_seq)),
    { ...state, accountsSeq, own },
  );
}

function updated(
  state: State,
  { chatId, page, since }: Extract<Action, { type: "updates" }>,
): State {
  const next = onChat(state, chatId, (chat) => {
    if (!chat.window) return chat;
    const kept = forgotten(chat, page.deleted_ids);
    return onWindows(kept, (window) => {
      const after = withChanges(withMessages(window, page.messages, kept.gone), page.changes);
      // What was loaded meanwhile may lack changes from before those that were asked for.
      return after.seq < since ? after : { ...after, seq: Math.max(after.seq, page.seq) };
    });
  });
  return known(next, { ...page.conversation, reads: page.reads ?? {} });
}

function loaded(state: State, action: Extract<Action, { type: "history" }>): State {
  const { page, since, before } = action;
  return onChat(state, action.chatId, (chat) => {
    const { window, gone } = chat;
    const isNext = before === undefined ? window === null : window?.floor?.id === before;
    if (!isNext) return chat;
    const next = window ? withOlder(window, page, gone, since) : openedWindow(page, gone, since);
    return joined({ ...chat, window: next });
  });
}

function loadedAside(state: State, action: Extract<Action, { type: "aside" }>): State {
  const { page, since, from } = action;
  return onChat(state, action.chatId, (chat) => {
    const { aside: before, gone } = chat;
    const edge = from?.direction === "older" ? before?.floor : before?.ceiling;
    if (from && edge?.id !== from.id) return chat;
    const extended = from?.direction === "older" ? withOlder : withNewer;
    const aside =
      from && before ? extended(before, page, gone, since) : windowAround(page, gone, since);
    return joined({ ...chat, aside });
  });
}

function fetched(state: State, message: Message): State {
  const { id, conversation_id } = message;
  return onMessage(state, conversation_id, id, (known) => later(known, message));
}
