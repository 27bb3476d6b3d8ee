import type { Account, AgentProfile, ConversationChange } from "@parley/protocol";
import type { LocalChat, LocalMessage, Pieces, Status, TypingState } from "../types.ts";
import type { Accounts } from "./accounts.ts";
import type { Delta } from "./append-deltas.ts";

/**
 * A conversation in two layers: the conversation itself and the messages loaded of it. Each layer is
 * a copy of the server's state at one value of the change counter (`chat.seq` and `window.seq`). A
 * counted event advances a layer only if it is the next change; otherwise the layer is behind and
 * the missing changes are fetched.
 */
export interface ChatState {
  readonly chat: LocalChat;
  /** The latest messages; null until the conversation is opened. */
  readonly window: Window | null;
  /** Older messages, as long as there is a gap between them and the window. */
  readonly aside: Window | null;
  /** The highest counter value seen in an event or a reply. */
  readonly highestSeq: number;
  /**
   * Incremented whenever events alone do not determine the server's state. The conversation is then
   * stale, and fetched, until `validated` has the same value.
   */
  readonly invalidations: number;
  /** The value that `invalidations` had when the latest snapshot was requested. */
  readonly validated: number;
  /** The highest known read position of each person, including people who left. */
  readonly readPositions: Readonly<Record<string, number>>;
  /** Whether lists show it: a cleared conversation is left out until something new comes. */
  readonly isListed: boolean;
  /** The value of the caller's own counter as of which the caller's view of it is known. */
  readonly viewSeq: number;
  /** How often the caller's own read position was moved here. */
  readonly moves: number;
  /** Ids of deleted and hidden messages. A late reply does not bring them back. */
  readonly tombstones: ReadonlySet<string>;
}

/** A range of messages without gaps. */
export interface Window {
  readonly items: readonly LocalMessage[];
  /** Changes of the group itself in this range, by `seq`. */
  readonly changes: readonly ConversationChange[];
  /** The oldest message loaded, if there may be older ones. It may have been deleted since. */
  readonly floor: Place | null;
  /** The newest message loaded; null if the range includes the latest message. */
  readonly ceiling: Place | null;
  /** All changes up to this counter value are included; some later ones may be. */
  readonly seq: number;
}

export interface Place {
  readonly id: string;
  readonly seq: number;
}

/** A change made by the caller and shown before the server has confirmed it. */
export type OptimisticChange = { readonly changeId: string } & (
  | { readonly kind: "edit"; readonly id: string; readonly content: string; readonly at: string }
  | { readonly kind: "react"; readonly id: string; readonly emoji: string; readonly on: boolean }
  | {
      readonly kind: "remove";
      readonly ids: readonly string[];
      readonly scope: "me" | "everyone";
    }
);

/** The people whom the caller blocked, as of a value of the caller's own counter. */
export interface Blocked {
  readonly usernames: readonly string[];
  readonly own_seq: number;
}

type ByChat<Value> = Readonly<Record<string, Value>>;

export interface State {
  readonly status: Status;
  /** The server's history that everything here was fetched from; null if not known. */
  readonly historyId: string | null;
  readonly me: Account | null;
  readonly chats: ByChat<ChatState>;
  /** Ids of the conversations that lists show, latest activity first. */
  readonly order: readonly string[];
  readonly unread: Pieces["unread"];
  /** The newest record of each account. */
  readonly accounts: Accounts;
  /** The `accounts_seq` of the last `getUpdates`; null before the first. */
  readonly accountsSeq: number | null;
  /**
   * The caller's own counter, which counts messages deleted for oneself and changes of the block
   * list: `seq` is the value up to which all of them are known, `highest` the highest value seen.
   */
  readonly own: { readonly seq: number | null; readonly highest: number };
  /** The newest known block list. */
  readonly blocked: Blocked;
  /** The highest counter value seen of each conversation, including those not loaded. */
  readonly highestSeqs: ByChat<number>;
  /** Conversations that are not known yet, and have something new. */
  readonly news: ByChat<true>;
  /** Conversations the caller is no longer in, with the counter value at that time. */
  readonly left: ByChat<number>;
  /** The caller's messages that are not in the window yet, in the order they were written. */
  readonly outbox: ByChat<readonly LocalMessage[]>;
  /** By file id: object URLs of the files that this client has sent. */
  readonly localUrls: Readonly<Record<string, string>>;
  readonly optimisticChanges: ByChat<readonly OptimisticChange[]>;
  /** The caller's read positions that the server has not confirmed yet. */
  readonly unconfirmedReads: ByChat<number>;
  readonly typing: ByChat<TypingState>;
  /** By message id: deltas that arrived before the ones they continue. */
  readonly earlyDeltas: Readonly<Record<string, readonly Delta[]>>;
  readonly agents: readonly AgentProfile[];
  readonly drafts: ByChat<string>;
}

/** The part of the state that survives a restart. The property names are the stored format. */
export interface CachedState {
  historyId: string | null;
  accountsSeq: number | null;
  /** The caller's own counter. */
  own: number | null;
  /** Missing in what earlier versions stored. */
  blocked?: Blocked;
  me: Account;
  agents: readonly AgentProfile[];
  chats: readonly { chat: LocalChat; window: Window | null }[];
  /** The caller's read positions that the server has not confirmed yet. */
  reading: State["unconfirmedReads"];
}

const NOBODY_BLOCKED: Blocked = { usernames: [], own_seq: -1 };

export const initialState = (status: Status): State => ({
  status,
  historyId: null,
  me: null,
  chats: {},
  order: [],
  unread: { human: 0, agent: 0, mentions: 0 },
  accounts: {},
  accountsSeq: null,
  own: { seq: null, highest: 0 },
  blocked: NOBODY_BLOCKED,
  highestSeqs: {},
  news: {},
  left: {},
  outbox: {},
  localUrls: {},
  optimisticChanges: {},
  unconfirmedReads: {},
  typing: {},
  earlyDeltas: {},
  agents: [],
  drafts: {},
});

/** The counter value up to which all loaded messages are current; null if none are loaded. */
export function loadedSeq({ window, aside }: ChatState): number | null {
  if (!window) return null;
  return Math.min(window.seq, aside?.seq ?? window.seq);
}

export function loadedMessage({ window, aside }: ChatState, id: string): LocalMessage | undefined {
  const isIt = (message: LocalMessage) => message.id === id;
  return window?.items.findLast(isIt) ?? aside?.items.findLast(isIt);
}

/** Whether changes are missing. */
export const isBehind = (state: ChatState): boolean =>
  state.highestSeq > state.chat.seq || (loadedSeq(state) ?? state.chat.seq) < state.chat.seq;

/** Whether the conversation has to be fetched because events did not determine its state. */
export const isStale = ({ invalidations, validated }: ChatState): boolean =>
  invalidations > validated;

/** Whether a deletion for oneself or a block, made on another device, is missing. */
export const isOwnBehind = ({ own }: State): boolean => own.seq !== null && own.highest > own.seq;
