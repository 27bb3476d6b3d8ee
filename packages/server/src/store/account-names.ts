import { fold } from "../rules/search.ts";
import type { AccountRecord, FoundAccount } from "./accounts.ts";

/** By what an account is found: its username, and its display name from each of its words on. */
export function accountNames(username: string, displayName: string): string[] {
  const name = foldName(displayName);
  const wordStarts = [...name.matchAll(/(?<![\p{L}\p{N}])[\p{L}\p{N}]/gu)];
  return [...new Set([username, name, ...wordStarts.map(({ index }) => name.slice(index))])];
}

/** Without case and accents, with single spaces. Queries and names are compared in this form. */
export const foldName = (text: string) => fold(text).replace(/\s+/g, " ").trim();

/** Greater than everything that begins with the prefix, in the order of bytes. */
export const afterPrefix = (prefix: string) => `${prefix}\u{10ffff}`;

/** The few agents of a viewer are not indexed: those that match take their places among the found. */
export function withAgents(
  found: readonly FoundAccount[],
  agents: readonly AccountRecord[],
  { prefix, after, limit }: { prefix: string; after: Place; limit: number },
): FoundAccount[] {
  const matching = agents.flatMap((agent) => {
    const names = accountNames(agent.username, agent.display_name);
    const [name] = names.filter((each) => each.startsWith(prefix)).sort(compareBytes);
    return name === undefined ? [] : [{ ...agent, name }];
  });
  return [...found, ...matching.filter((agent) => comparePlaces(agent, after) > 0)]
    .sort(comparePlaces)
    .slice(0, limit);
}

type Place = Pick<FoundAccount, "name" | "username">;

const comparePlaces = (one: Place, other: Place) =>
  compareBytes(one.name, other.name) || compareBytes(one.username, other.username);

const compareBytes = (one: string, other: string) =>
  Buffer.compare(Buffer.from(one), Buffer.from(other));
