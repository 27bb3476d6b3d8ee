/**
 * Makes text that is still growing read as it will: what has been opened and not closed yet is
 * closed, and an unfinished link shows its label. So nothing flips when the rest arrives.
 */
export function settle(text: string): string {
  const start = text.lastIndexOf("\n\n") + 1;
  if (insideFence(text)) return text;
  const head = text.slice(0, start);
  const tail = withoutHalfLink(text.slice(start)).replace(/[*_~`[]+$/, "");
  return head + tail + closers(tail);
}

const insideFence = (text: string) => (text.match(/^[ \t>]*(?:```|~~~)/gm)?.length ?? 0) % 2 === 1;

const withoutHalfLink = (text: string) => text.replace(/!?\[([^\]\n]*)\]?(?:\([^)\n]*)?$/, "$1");

function closers(text: string): string {
  if ((text.match(/`/g)?.length ?? 0) % 2 === 1) return "`";
  const outside = text.replace(/`[^`]*`/g, "");
  const open = (mark: string) => outside.split(mark).length % 2 === 0;
  const strong = open("**") ? "**" : "";
  const struck = open("~~") ? "~~" : "";
  return strong + struck;
}
