/**
 * Closes the marks that are open at the end of a streaming text and reduces an unfinished link to its
 * label, so that the rendering does not change abruptly when the rest arrives.
 */
export function closeOpenMarks(text: string): string {
  const start = text.lastIndexOf("\n\n") + 1;
  if (insideFence(text)) return text;
  const head = text.slice(0, start);
  const tail = withoutLastMarks(withoutOpenLink(text.slice(start)));
  return head + tail + closers(tail);
}

const insideFence = (text: string) => (text.match(/^[ \t>]*(?:```|~~~)/gm)?.length ?? 0) % 2 === 1;

/** Limits the search, which is quadratic for a text of many brackets. */
const MAX_OPEN_LINK_LENGTH = 2048;

function withoutOpenLink(text: string): string {
  const start = Math.max(0, text.length - MAX_OPEN_LINK_LENGTH);
  const end = text.slice(start).replace(/!?\[([^\]\n]*)\]?(?:\([^)\n]*)?$/, "$1");
  return text.slice(0, start) + end;
}

function withoutLastMarks(text: string): string {
  let end = text.length;
  while (end > 0 && "*_~`[".includes(text.charAt(end - 1))) end--;
  return text.slice(0, end);
}

function closers(text: string): string {
  if ((text.match(/`/g)?.length ?? 0) % 2 === 1) return "`";
  const outside = text.replace(/`[^`]*`/g, "");
  const open = (mark: string) => outside.split(mark).length % 2 === 0;
  const strong = open("**") ? "**" : "";
  const struck = open("~~") ? "~~" : "";
  return strong + struck;
}
