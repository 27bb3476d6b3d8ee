import type { AccountRecord } from "../rules/accounts.ts";
import { fold } from "../rules/search.ts";

export interface NameQuery {
  query: string;
  /** Return only accounts after this position of the list. */
  after?: Place | undefined;
}

export interface FoundAccount extends AccountRecord {
  /** The name that matched, without case and accents. */
  name: string;
}

/** The names that an account is found by: its username, and its display name from each word on. */
export function accountNames(username: string, displayName: string): string[] {
  const name = foldName(displayName);
  const wordStarts = [...name.matchAll(/(?<![\p{L}\p{N}])[\p{L}\p{N}]/gu)];
  return [...new Set([username, name, ...wordStarts.map(({ index }) => name.slice(index))])];
}

/** Removes case, accents and repeated spaces. Queries and names are compared in this form. */
const foldName = (text: string) => fold(text).replace(/\s+/g, " ").trim();

/** The range of the name index that a query reads. Names are ordered by their bytes. */
export interface NameRange {
  prefix: string;
  /** Exclusive. */
  after: Place;
  /** Exclusive: greater than every name that starts with the prefix. */
  end: string;
}

/** Null when the query is empty and so matches nothing. */
export function nameRange({ query, after }: NameQuery): NameRange | null {
  const prefix = foldName(query);
  if (prefix === "") return null;
  return {
    prefix,
    after: after ?? { name: prefix, username: "" },
    end: `${prefix}\u{10ffff}`,
  };
}

/** Adds the matching agents of the viewer, which are few and therefore not in the index. */
export function withAgents(
  found: readonly FoundAccount[],
  agents: readonly AccountRecord[],
  { prefix, after }: NameRange,
  limit: number,
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
