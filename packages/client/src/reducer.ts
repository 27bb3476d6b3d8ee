import type { Account, AgentProfile, EventFrame, Message, OutputOf } from "@parley/protocol";
import { forgotten, hidden, withRead } from "./chat.ts";
import { onChat, onMessage, placed, withoutChat } from "./chats.ts";
import { afterEvent, identified } from "./events.ts";
import { later } from "./message.ts";
import { named, signedAsNow } from "./names.ts";
import { type OutboxAction, reduceOutbox } from "./pending.ts";
import { share } from "./share.ts";
import { adopted, type Snapshot } from "./snapshot.ts";
import { initialState, type State } from "./state.ts";
import { released } from "./streaming.ts";
import type { Status } from "./types.ts";
import { withoutTyping } from "./typing.ts";
import { type HistoryPage, openedWindow, withMessages, withOlder } from "./window.ts";

type UpdatesPage = Extract<OutputOf<"getUpdates">, { messages: unknown }>;

export type Action =
  | { type: "status"; status: Status }
  | { type: "me"; me: Account }
  | { type: "event"; frame: EventFrame }
  /** Conversations as the server has them; `answers` are the doubts when they were asked for. */
  | { type: "snapshots"; snapshots: readonly Snapshot[]; answers?: number }
  | { type: "updates"; chatId: string; page: UpdatesPage }
  /** A page of messages; `since` is the counter when it was asked for. */
  | { type: "history"; chatId: string; page: HistoryPage; since: number; before?: string }
  | { type: "message"; message: Message }
  | { type: "chatGone"; chatId: string; seq?: number }
  | { type: "messagesGone"; chatId: string; ids: readonly string[] }
  | { type: "read"; chatId: string; seq: number }
  | { type: "typingEnded"; chatId?: string; username?: string }
  | { type: "agents"; agents: readonly AgentProfile[] }
  | { type: "drafts"; drafts: Readonly<Record<string, string>> }
  | { type: "reset"; status: Status }
  | OutboxAction;

/** The live model: what is known, and what comes of it when something is heard or done. */
export function reduce(state: State, action: Action): State {
  return released(step(state, action));
}

function step(state: State, action: Action): State {
  switch (action.type) {
    case "status":
      return { ...state, status: action.status };
    case "me":
      return identified(state, action.me);
    case "event":
      return afterEvent(state, action.frame);
    case "snapshots":
      return action.snapshots.reduce((next, each) => known(next, each, action.answers), state);
    case "updates":
      return updated(state, action.chatId, action.page);
    case "history":
      return loaded(state, action);
    case "message":
      return fetched(state, action.message);
    case "chatGone":
      return withoutChat(state, action.chatId, action.seq);
    case "messagesGone":
      return onChat(state, action.chatId, (chat) => hidden(chat, action.ids, name(state)));
    case "read":
      return onChat(state, action.chatId, (chat) =>
        withRead(chat, name(state) ?? "", action.seq, name(state)),
      );
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

function known(state: State, snapshot: Snapshot, answers?: number): State {
  const { id, seq } = snapshot;
  if (seq < (state.left[id] ?? 0)) return state;
  const met = adopted(state.chats[id], snapshot);
  const chat = state.chats[id] ? met : { ...met, heard: Math.max(seq, state.heard[id] ?? 0) };
  const answered = Math.max(chat.answered, answers ?? 0);
  return placed(state, id, answered === chat.answered ? chat : { ...chat, answered });
}

function updated(state: State, chatId: string, page: UpdatesPage): State {
  const next = onChat(state, chatId, (chat) => {
    if (!chat.window) return chat;
    const kept = forgotten(chat, page.deleted_ids);
    const window = kept.window && withMessages(kept.window, page.messages, kept.gone);
    return { ...kept, window: window && { ...window, seq: Math.max(window.seq, page.seq) } };
  });
  const met = known(next, page.conversation);
  return onChat(met, chatId, (chat) => named(chat, chat.chat.participants));
}

function loaded(state: State, action: Extract<Action, { type: "history" }>): State {
  const { page, since, before } = action;
  return onChat(state, action.chatId, (chat) => {
    const { window, gone } = chat;
    const isNext = before === undefined ? window === null : window?.floor?.id === before;
    if (!isNext) return chat;
    const next = window ? withOlder(window, page, gone, since) : openedWindow(page, gone, since);
    return named({ ...chat, window: next }, chat.chat.participants);
  });
}

function fetched(state: State, message: Message): State {
  const chat = state.chats[message.conversation_id];
  if (!chat) return state;
  const signedMessage = signedAsNow(chat, message);
  return onMessage(state, chat.chat.id, message.id, (known) => later(known, signedMessage));
}
