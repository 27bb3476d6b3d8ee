import type { LocalChat } from "@parley/client";
import type { Account } from "@parley/protocol";

/** The participants without oneself; in a conversation with oneself, oneself. */
export function others(chat: LocalChat, me: Account): Account[] {
  const rest = chat.participants.filter(({ username }) => username !== me.username);
  return rest.length > 0 ? rest : [me];
}

export function chatTitle(chat: LocalChat, me: Account): string {
  if (chat.title) return chat.title;
  const all = others(chat, me);
  const names = all.map(all.length === 1 ? nameOf : shortName);
  const rest = chat.participant_count - 1 - 3;
  return chat.kind === "direct" || names.length <= 3
    ? names.join(", ")
    : `${names.slice(0, 3).join(", ")} and ${Math.max(rest, 1)} more`;
}

/** Who gets what is written here: the title of a conversation with an agent is not its name. */
export function addressee(chat: LocalChat, me: Account): string {
  const [other] = others(chat, me);
  return chat.kind === "direct" && other ? nameOf(other) : chatTitle(chat, me);
}

/** For places where CSS cannot truncate, such as a placeholder. */
export const truncated = (text: string, most: number) =>
  text.length <= most ? text : `${text.slice(0, most).trimEnd()}…`;

/**
 * An account's name as it is shown. The server names a new agent «Ada's Claude»; the owner is left out
 * because a chip beside the name shows it.
 */
export function nameOf({ kind, username, display_name }: Account): string {
  if (kind === "human") return display_name;
  const [, own] = /^.+['’]s (.+)$/u.exec(display_name) ?? [];
  return own && letters(own).startsWith(letters(providerOf(username))) ? own : display_name;
}

const letters = (text: string) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");

export const firstName = (name: string) => name.split(" ")[0] ?? name;

/** The first name of a person, the name of an agent or of a deleted account. */
export const shortName = (account: Account) =>
  account.kind === "agent" || account.deleted ? nameOf(account) : firstName(account.display_name);

/** Shortens a long name in the middle: similar names often differ in their last word. */
export function shortenMiddle(name: string, most: number): string {
  const characters = Array.from(name);
  if (characters.length <= most) return name;
  const half = Math.floor((most - 3) / 2);
  const head = characters
    .slice(0, half)
    .join("")
    .replace(/(?<=\S{3})\s+\S*$/u, "")
    .trimEnd();
  const tail = characters
    // What the whole words of the head leave.
    .slice(Array.from(head).length + 3 - most)
    .join("")
    .replace(/^\S*\s+(?=\S{3})/u, "");
  return `${head} … ${tail}`;
}

/** Shorter titles fit into a row of the list nearly everywhere. */
const SHORT_TITLE = 16;

/** A long title in two parts: what may be cut, and its last word, or the end of a long one. */
export function splitTitle(title: string): { start: string; end: string } {
  const [end = ""] =
    title.length > SHORT_TITLE ? (/(?<=\s)\S{1,12}$|.{5}$/u.exec(title) ?? []) : [];
  return { start: title.slice(0, title.length - end.length), end };
}

export const ownerOf = (username: string) => username.split(":")[0] ?? username;
export const providerOf = (username: string) => username.split(":")[1] ?? "";
export const isMyAgent = (account: Pick<Account, "kind" | "username">, me: Account) =>
  account.kind === "agent" && ownerOf(account.username) === me.username;

export const count = (number: number, one: string, many = `${one}s`) =>
  `${number.toLocaleString()} ${number === 1 ? one : many}`;
