import type { LocalChat } from "@parley/client";
import type { Account } from "@parley/protocol";

/** The others first of all; in a conversation with oneself, oneself. */
export function others(chat: LocalChat, me: Account): Account[] {
  const rest = chat.participants.filter(({ username }) => username !== me.username);
  return rest.length > 0 ? rest : [me];
}

export function chatTitle(chat: LocalChat, me: Account): string {
  if (chat.title) return chat.title;
  const names = others(chat, me).map(({ display_name }) => display_name);
  const rest = chat.participant_count - 1 - 3;
  return chat.kind === "direct" || names.length <= 3
    ? names.join(", ")
    : `${names.slice(0, 3).join(", ")} and ${Math.max(rest, 1)} more`;
}

/** For places of one line that cannot cut text off by themselves. */
export const shortened = (text: string, most: number) =>
  text.length <= most ? text : `${text.slice(0, most).trimEnd()}…`;

export const firstName = (name: string) => name.split(" ")[0] ?? name;

export const ownerOf = (username: string) => username.split(":")[0] ?? username;
export const isMyAgent = (account: Account, me: Account) =>
  account.kind === "agent" && ownerOf(account.username) === me.username;

export const count = (number: number, one: string, many = `${one}s`) =>
  `${number.toLocaleString()} ${number === 1 ? one : many}`;
