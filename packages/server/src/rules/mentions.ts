import { withoutCode } from "@parley/protocol/markup";

const HANDLE =
  /(?<![\p{L}\p{N}_@])@([a-z0-9_]{2,32}(?::[a-z][a-z0-9_-]{1,31})?)(?![\p{L}\p{N}\p{M}_])/giu;

/**
 * The handles a message names, in lowercase, in the order of their first appearance: `@alice`,
 * `@alice:claude`. Handles inside code do not count. Each comes with what else it may have meant:
 * «@alice:thanks» and «@alice:claude-» name somebody too.
 */
export function mentionedHandles(content: string): string[][] {
  if (!content.includes("@")) return [];
  const found = new Set<string>();
  for (const match of withoutCode(content).matchAll(HANDLE)) {
    found.add((match[1] as string).toLowerCase());
  }
  return [...found].map(readings);
}

/** The handle, then without what a hyphen has joined on, then the person alone. */
function readings(handle: string): string[] {
  const shorter = [...handle.matchAll(/-/g)].map(({ index }) => handle.slice(0, index)).reverse();
  return [handle, ...shorter, handle.replace(/:.*$/, "")];
}

/** Who of the participants is mentioned. */
export function mentioned(handles: string[][], participants: ReadonlySet<string>): string[] {
  const names = handles.map((readings) => readings.find((name) => participants.has(name)));
  return [...new Set(names.filter((name) => name !== undefined))];
}
