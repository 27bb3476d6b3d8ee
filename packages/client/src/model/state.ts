import type { Account, AgentProfile, ConversationChange } from "@parley/protocol";
import type { LocalChat, LocalMessage, Pieces, Status, TypingState } from "../types.ts";
import type { Accounts } from "./accounts.ts";
import type { Delta } from "./stream.ts";

/**
 * A conversation in two layers, each a copy of the server's as of a value of the change counter:
 * the conversation itself (`chat.seq`), and the messages loaded of it (`window.seq`). A counted
 * event moves a layer on only from the value right before it; whatever is behind is fetched.
 */
export interface ChatState {
  readonly chat: LocalChat;
  /** Null until the conversation is opened. */
  readonly window: Window | null;
  /** Messages further back, while some between them and the window are not loaded. */
  readonly aside: Window | null;
  /** The highest value of the counter heard of. */
  readonly heard: number;
  /** Goes up whenever events alone do not tell what the server would say. */
  readonly doubts: number;
  /** Which of the doubts a snapshot has answered. */
  readonly answered: number;
  /** The highest read position of each person that was heard of, also of those who left. */
  readonly positions: Readonly<Record<string, number>>;
  /** Messages deleted or hidden: an answer that was on its way meanwhile does not bring them back. */
  readonly gone: ReadonlySet<string>;
}

/** The messages from some place up to another, without gaps. */
export interface Window {
  readonly items: readonly LocalMessage[];
  /** What changed of the group itself between them, by `seq`. */
  readonly changes: readonly ConversationChange[];
  /** The oldest message loaded, if there may be older ones; it may have been deleted since. */
  readonly floor: Place | null;
  /** The newest message loaded, if there are newer ones; null when the window goes up to the latest. */
  readonly ceiling: Place | null;
  /** Every change up to this value is in; some later ones may be. */
  readonly seq: number;
}

export interface Place {
  readonly id: string;
  readonly seq: number;
}

/** A change of the caller's own that is shown before the server has confirmed it. */
export type Change = { readonly token: number } & (
  | { readonly kind: "edit"; readonly id: string; readonly content: string; readonly at: string }
  | { readonly kind: "react"; readonly id: string; readonly emoji: string; readonly on: boolean }
  | { readonly kind: "remove"; readonly ids: readonly string[] }
);

type ByChat<Value> = Readonly<Record<string, Value>>;

export interface State {
  readonly status: Status;
  /** Names the server's history that everything here was fetched from; null if it is not known. */
  readonly historyId: string | null;
  readonly me: Account | null;
  readonly chats: ByChat<ChatState>;
  /** Ids of the conversations, latest activity first. */
  readonly order: readonly string[];
  readonly unread: Pieces["unread"];
  /** The newest record of each account. */
  readonly accounts: Accounts;
  /** Up to where new names were asked for; null before the first answer. */
  readonly accountsSeq: number | null;
  /** The caller's own counter: up to where all that was hidden is known, and the highest heard of. */
  readonly own: { readonly seq: number | null; readonly heard: number };
  /** The highest counter heard of each conversation, known or not. */
  readonly heard: ByChat<number>;
  /** Conversations the caller is no longer in, and the counter when they went. */
  readonly left: ByChat<number>;
  /** What was written and is not in the window yet, in order. */
  readonly outbox: ByChat<readonly LocalMessage[]>;
  readonly changes: ByChat<readonly Change[]>;
  /** Up to where the caller has read without the server having confirmed it. */
  readonly reading: ByChat<number>;
  readonly typing: ByChat<TypingState>;
  /** By message: pieces of a stream that came before those in front of them. */
  readonly early: Readonly<Record<string, readonly Delta[]>>;
  readonly agents: readonly AgentProfile[];
  readonly drafts: ByChat<string>;
}

/** What the cache stores of the state. */
export interface Cached {
  historyId: string | null;
  accountsSeq: number | null;
  /** The caller's own counter. */
  own: number | null;
  me: Account;
  agents: readonly AgentProfile[];
  chats: readonly { chat: LocalChat; window: Window | null }[];
  reading: State["reading"];
}

export const initialState = (status: Status): State => ({
  status,
  historyId: null,
  me: null,
  chats: {},
  order: [],
  unread: { human: 0, agent: 0, mentions: 0 },
  accounts: {},
  accountsSeq: null,
  own: { seq: null, heard: 0 },
  heard: {},
  left: {},
  outbox: {},
  changes: {},
  reading: {},
  typing: {},
  early: {},
  agents: [],
  drafts: {},
});

/** Up to where every change is in all that is loaded of a conversation; null if nothing is. */
export function loadedSeq({ window, aside }: ChatState): number | null {
  if (!window) return null;
  return Math.min(window.seq, aside?.seq ?? window.seq);
}

export function loadedMessage({ window, aside }: ChatState, id: string): LocalMessage | undefined {
  const isIt = (message: LocalMessage) => message.id === id;
  return window?.items.findLast(isIt) ?? aside?.items.findLast(isIt);
}

export const isBehind = (state: ChatState): boolean =>
  state.heard > state.chat.seq || (loadedSeq(state) ?? state.chat.seq) < state.chat.seq;

export const isDoubtful = ({ doubts, answered }: ChatState): boolean => doubts > answered;

/** Whether something was hidden on another device that is not known yet. */
export const isOwnBehind = ({ own }: State): boolean => own.seq !== null && own.heard > own.seq;
