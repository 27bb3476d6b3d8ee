import type { Account, ConversationChange, Message } from "@parley/protocol";
import { share } from "./share.ts";
import type { ChatState } from "./state.ts";
import { onWindows } from "./window.ts";

/** The message under its sender's latest name; an event may have been made just before a change of name. */
export function signedAsNow<Known extends Message>({ chat }: ChatState, message: Known): Known {
  return withNames(message, renaming(chat.participants));
}

type Rename = <Named extends Account>(account: Named) => Named;

/** Gives accounts their latest names, as far as those are known. */
function renaming(accounts: readonly Account[]): Rename {
  const names = new Map(accounts.map(({ username, display_name }) => [username, display_name]));
  return (account) => {
    const display_name = names.get(account.username) ?? account.display_name;
    return display_name === account.display_name ? account : { ...account, display_name };
  };
}

/** The message with everybody it names renamed; the very same one when nobody is. */
function withNames<Known extends Message>(message: Known, rename: Rename): Known {
  const sender = rename(message.sender);
  const by = message.action && rename(message.action.by);
  const uses = mapped(message.uses, (use) => {
    const user = rename(use.by);
    return user === use.by ? use : { ...use, by: user };
  });
  const isSame =
    sender === message.sender && by === (message.action?.by ?? null) && uses === message.uses;
  if (isSame) return message;
  const action = message.action && by ? { ...message.action, by } : null;
  return { ...message, sender, action, uses };
}

/** A name is the account's, wherever it stands. */
export function named(state: ChatState, accounts: readonly Account[]): ChatState {
  const rename = renaming(accounts);
  const { chat } = state;
  const message = <Known extends Message>(one: Known): Known => withNames(one, rename);
  const renamed = share(chat, {
    ...chat,
    participants: chat.participants.map(rename),
    created_by: rename(chat.created_by),
    last_message: chat.last_message && message(chat.last_message),
  });
  return onWindows({ ...state, chat: renamed }, (window) => {
    const items = mapped(window.items, message);
    const changes = mapped(window.changes, (change) => changeWithNames(change, rename));
    return items === window.items && changes === window.changes
      ? window
      : { ...window, items, changes };
  });
}

function changeWithNames(change: ConversationChange, rename: Rename): ConversationChange {
  const actor = rename(change.actor);
  const subjects = mapped(change.subjects, rename);
  const isSame = actor === change.actor && subjects === change.subjects;
  return isSame ? change : { ...change, actor, subjects };
}

/** The very same list when nothing in it changes. */
function mapped<Item>(list: Item[], change: (item: Item) => Item): Item[];
function mapped<Item>(list: readonly Item[], change: (item: Item) => Item): readonly Item[];
function mapped<Item>(list: readonly Item[], change: (item: Item) => Item): readonly Item[] {
  const changed = list.map(change);
  return changed.every((item, place) => item === list[place]) ? list : changed;
}
