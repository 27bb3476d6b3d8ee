import type { Account } from "@parley/protocol";
import { type Accounts, collectAccounts, updateNames } from "./accounts.ts";
import type { Action, ActionOf } from "./actions.ts";
import { removeChat, updateChat } from "./chats.ts";
import { hideMessages } from "./deletions.ts";
import { applyEvent, setMe } from "./events.ts";
import {
  applyAside,
  applyMessage,
  applyMessagePage,
  applyOverview,
  applySnapshot,
  applyUpdates,
} from "./fetched.ts";
import { withoutUrls } from "./local-urls.ts";
import { asSent } from "./message.ts";
import { reduceOptimistic } from "./optimistic-changes.ts";
import { reduceOutbox, unsentOf } from "./outbox.ts";
import { showView } from "./own-view.ts";
import { markRead } from "./read-positions.ts";
import { type CachedState, initialState, type State } from "./state.ts";
import { applyEarlyDeltas } from "./streaming-messages.ts";
import { setEntry, share } from "./structural-sharing.ts";
import { endTyping } from "./typing.ts";
import { viewerOf } from "./unread.ts";

/** The state after an action. Account records in the action update names everywhere. */
export function reduce(state: State, action: Action): State {
  const accounts = collectAccounts(state.accounts, action);
  const renamed = accounts === state.accounts ? state : setAccounts(state, accounts);
  return applyEarlyDeltas(applyAction(renamed, updateNames(accounts, action)));
}

function setAccounts(state: State, accounts: Accounts): State {
  const isNewer = ([username, { version }]: [string, Account]) =>
    version > (state.accounts[username]?.version ?? version);
  const isRenamed = Object.entries(accounts).some(isNewer);
  return { ...(isRenamed ? updateNames(accounts, state) : state), accounts };
}

function applyAction(state: State, action: Action): State {
  switch (action.type) {
    case "status":
      return { ...state, status: action.status };
    case "me":
      return setMe(state, action.me);
    case "historyId":
      return setHistory(state, action.historyId);
    case "copyDiscarded":
      return discardCopy(state);
    case "event":
      return applyEvent(state, action.frame);
    case "overview":
      return applyOverview(state, action.page);
    case "snapshots":
      return action.snapshots.reduce(
        (next, snapshot) => applySnapshot(next, snapshot, action),
        state,
      );
    case "viewSet":
      return updateChat(state, action.chatId, (chat) => showView(chat, action.set));
    case "updates":
      return applyUpdates(state, action);
    case "messagePage":
      return applyMessagePage(state, action);
    case "aside":
      return applyAside(state, action);
    case "asideClosed":
      return updateChat(state, action.chatId, (chat) =>
        chat.aside ? { ...chat, aside: null } : chat,
      );
    case "unloaded":
      return updateChat(state, action.chatId, (chat) => ({ ...chat, window: null, aside: null }));
    case "restored":
      return restore(state, action.cached);
    case "message":
      return applyMessage(state, action.message);
    case "chatRemoved":
      return removeChat(state, action.chatId);
    case "messagesRemoved":
      return updateChat(state, action.chatId, (chat) =>
        hideMessages(chat, action.ids, viewerOf(state)),
      );
    case "read":
      return readUpTo(state, action);
    case "readSettled":
      return settleRead(state, action);
    case "typingEnded":
      return { ...state, typing: endTyping(state.typing, action) };
    case "agents":
      return { ...state, agents: share(state.agents, action.agents) };
    case "drafts":
      return { ...state, drafts: action.drafts };
    case "localUrlsRevoked":
      return { ...state, localUrls: withoutUrls(state.localUrls, action.fileIds) };
    case "changeStarted":
    case "changeEnded":
      return reduceOptimistic(state, action);
    case "reset":
      return initialState(action.status);
    default:
      return reduceOutbox(state, action);
  }
}

function setHistory(state: State, historyId: string): State {
  const { historyId: known } = state;
  return { ...(known === null || known === historyId ? state : discardCopy(state)), historyId };
}

/** Discards everything fetched. Drafts, unsent messages and changes stay. */
const discardCopy = ({ status, outbox, ...state }: State): State => ({
  ...initialState(status),
  me: state.me,
  agents: state.agents,
  drafts: state.drafts,
  outbox: unsentOf(outbox),
  localUrls: state.localUrls,
  optimisticChanges: state.optimisticChanges,
});

function restore(state: State, { me, chats, own: seq, reading, ...cached }: CachedState): State {
  const next = chats.reduce(
    (each, { chat, window }) => {
      const known = applySnapshot(each, chat);
      // Messages that earlier versions stored have no `files`.
      const restored = window && { ...window, items: window.items.map(asSent) };
      return restored
        ? updateChat(known, chat.id, (shown) => ({ ...shown, window: restored }))
        : known;
    },
    setMe(state, me),
  );
  const { historyId, accountsSeq, agents } = cached;
  const own = { seq, highest: seq ?? 0 };
  const { blocked = next.blocked } = cached;
  return { ...next, historyId, accountsSeq, agents, own, blocked, unconfirmedReads: reading };
}

/** Shows that the caller has read, before the server confirms it. */
function readUpTo(state: State, { chatId, seq }: ActionOf<"read">): State {
  const me = state.me?.username;
  const unconfirmedReads = setEntry(state.unconfirmedReads, chatId, seq);
  return updateChat({ ...state, unconfirmedReads }, chatId, (chat) =>
    markRead(chat, me ?? "", seq, me),
  );
}

/** Keeps a position that the caller has moved further in the meantime. */
function settleRead(state: State, { chatId, seq }: ActionOf<"readSettled">): State {
  if ((state.unconfirmedReads[chatId] ?? 0) > seq) return state;
  return { ...state, unconfirmedReads: setEntry(state.unconfirmedReads, chatId, undefined) };
}
