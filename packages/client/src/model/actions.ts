import type {
  Account,
  AgentProfile,
  EventFrame,
  Message,
  OutputOf,
  ChatState as OwnView,
} from "@parley/protocol";
import type { Status } from "../types.ts";
import type { OptimisticAction } from "./optimistic-changes.ts";
import type { OutboxAction } from "./outbox.ts";
import type { Snapshot } from "./snapshot.ts";
import type { CachedState } from "./state.ts";
import type { MessagePage } from "./window.ts";

type UpdatesPage = Omit<Extract<OutputOf<"getUpdates">, { messages: unknown }>, "history_id">;

/** What `getUpdates` returns for all conversations. Older servers leave fields out. */
export type Overview = Partial<Extract<OutputOf<"getUpdates">, { gone: unknown }>>;

/** The edge of `aside` that a page continues. */
export interface AsideEdge {
  id: string;
  direction: "older" | "newer";
}

/** Everything that changes the state. */
export type Action =
  | { type: "status"; status: Status }
  | { type: "me"; me: Account }
  /** The server's history; what was fetched from another one is discarded. */
  | { type: "historyId"; historyId: string }
  /** Everything fetched belongs to a history that the server no longer has. */
  | { type: "copyDiscarded" }
  | { type: "event"; frame: EventFrame }
  /** Changes outside of conversations: account records, hidden messages, blocks, and their counters. */
  | { type: "overview"; page: Overview }
  /**
   * Conversations from a reply. `validates` is the conversation's `invalidations` when the reply was
   * requested: those are settled by it, later ones are not; `moves` are its own moves at that time.
   * `listed`: the reply is a part of the list.
   */
  | {
      type: "snapshots";
      snapshots: readonly Snapshot[];
      validates?: number;
      moves?: number;
      listed?: true;
    }
  /** The changes of a conversation after the counter value `since`. */
  | { type: "updates"; chatId: string; page: UpdatesPage; since: number }
  /**
   * The latest messages, or the page before the message `before`; `since` is the conversation's
   * counter at the request.
   */
  | { type: "messagePage"; chatId: string; page: MessagePage; since: number; before?: string }
  /** A page of older messages: around a message, or next to `from`. */
  | { type: "aside"; chatId: string; page: MessagePage; since: number; from?: AsideEdge }
  | { type: "asideClosed"; chatId: string }
  /** The loaded messages are too far behind to be updated. */
  | { type: "unloaded"; chatId: string }
  /** The state stored by an earlier run. */
  | { type: "restored"; cached: CachedState }
  | { type: "message"; message: Message }
  | { type: "chatRemoved"; chatId: string }
  | { type: "messagesRemoved"; chatId: string; ids: readonly string[] }
  | { type: "read"; chatId: string; seq: number }
  /** The server has confirmed or refused a read position. */
  | { type: "readSettled"; chatId: string; seq: number }
  /** What the caller has set of their view of a conversation, or taken back. */
  | { type: "viewSet"; chatId: string; set: Partial<OwnView> }
  /** Of one account in one conversation, or all typing. */
  | { type: "typingEnded"; chatId?: string; username?: string }
  | { type: "agents"; agents: readonly AgentProfile[] }
  | { type: "drafts"; drafts: Readonly<Record<string, string>> }
  /** The object URLs of these files are no longer valid. */
  | { type: "localUrlsRevoked"; fileIds: readonly string[] }
  | { type: "reset"; status: Status }
  | OptimisticAction
  | OutboxAction;

export type ActionOf<Type extends Action["type"]> = Extract<Action, { type: Type }>;
