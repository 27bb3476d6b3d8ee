import type { Account, Message } from "@parley/protocol";
import { share } from "./share.ts";
import type { ChatState } from "./state.ts";
import { onWindows } from "./window.ts";

/** The message under its sender's latest name; an event may have been made just before a change of name. */
export function signedAsNow<Known extends Message>({ chat }: ChatState, message: Known): Known {
  const { sender } = message;
  const now = chat.participants.find(({ username }) => username === sender.username);
  if (!now || now.display_name === sender.display_name) return message;
  return { ...message, sender: { ...sender, display_name: now.display_name } };
}

/** A name is the account's, wherever it stands. */
export function named(state: ChatState, accounts: readonly Account[]): ChatState {
  const names = new Map(accounts.map(({ username, display_name }) => [username, display_name]));
  const rename = <Named extends Account>(account: Named): Named => {
    const display_name = names.get(account.username) ?? account.display_name;
    return display_name === account.display_name ? account : { ...account, display_name };
  };
  const { chat } = state;
  const message = <Known extends Message>(one: Known): Known => {
    const sender = rename(one.sender);
    return sender === one.sender ? one : { ...one, sender };
  };
  const renamed = share(chat, {
    ...chat,
    participants: chat.participants.map(rename),
    created_by: rename(chat.created_by),
    last_message: chat.last_message && message(chat.last_message),
  });
  return onWindows({ ...state, chat: renamed }, (window) => {
    const items = window.items.map(message);
    const isSame = items.every((item, place) => item === window.items[place]);
    return isSame ? window : { ...window, items };
  });
}
