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

/** Blanks out code spans and fenced code as CommonMark sees them. */
export function withoutCode(content: string): string {
  const paragraphs = withoutFences(content).split(/(\n[ \t\r]*\n)/);
  return paragraphs.map(withoutSpans).join("");
}

function withoutFences(content: string): string {
  if (!content.includes("```") && !content.includes("~~~")) return content;
  let fence: { mark: string; length: number } | null = null;
  const lines = content.split("\n").map((line) => {
    const opening = /^ {0,3}(`{3,}|~{3,})(.*)$/s.exec(line);
    const run = opening?.[1] ?? "";
    const rest = opening?.[2] ?? "";
    if (fence) {
      const closes = run[0] === fence.mark && run.length >= fence.length && rest.trim() === "";
      if (closes) fence = null;
      return "";
    }
    if (run === "" || (run[0] === "`" && rest.includes("`"))) return line;
    fence = { mark: run[0] as string, length: run.length };
    return "";
  });
  return lines.join("\n");
}

/** A span runs from a string of backticks to the next of the same length. */
function withoutSpans(content: string): string {
  if (!content.includes("`")) return content;
  const runs = [...content.matchAll(/`+/g)].map(({ 0: run, index }) => ({
    run,
    index,
    escaped: /(?<!\\)(?:\\\\)*\\$/.test(content.slice(Math.max(0, index - 64), index)),
  }));
  // For each length, where its runs stand and which of them comes next.
  const byLength = new Map<number, { places: number[]; next: number }>();
  for (const { run, index } of runs) {
    const known = byLength.get(run.length);
    if (known) known.places.push(index);
    else byLength.set(run.length, { places: [index], next: 0 });
  }
  let out = "";
  let at = 0;
  for (const { run, index, escaped } of runs) {
    if (index < at || escaped) continue;
    const same = byLength.get(run.length) as { places: number[]; next: number };
    while ((same.places[same.next] ?? Number.POSITIVE_INFINITY) <= index) same.next++;
    const closing = same.places[same.next];
    if (closing === undefined) continue;
    out += `${content.slice(at, index)} `;
    at = closing + run.length;
  }
  return out + content.slice(at);
}
