/** Writes foreign text as one line of Markdown, so that nothing in it is markup or a mention. */

/** A piece of text with its look. */
export interface Run {
  readonly text: string;
  readonly bold?: boolean | undefined;
  readonly italic?: boolean | undefined;
  readonly strike?: boolean | undefined;
  readonly code?: boolean | undefined;
  /** The target of a link. A target that cannot be one is ignored. */
  readonly url?: string | null | undefined;
  /** Whether the text is the address itself, which clients recognise as a link. */
  readonly bare?: boolean;
  /** Whether the target is an image, and the text describes it. */
  readonly image?: boolean | undefined;
}

/** Bounds the cost of a line. Slack limits a section to 3000 characters. */
export const MAX_LINE_CHARACTERS = 4000;

export function renderLine(runs: readonly Run[]): string {
  const styled = merged(truncated(runs.map(resolved)));
  return merged(styled.map(withReadableMarks))
    .map((run, index) => renderRun(run, index === 0))
    .join("")
    .trimEnd();
}

/** A run of a single line, with the target of its link as it is written. */
interface Resolved extends Run {
  readonly target: string | null;
}

const resolved = (run: Run): Resolved => ({
  ...run,
  text: run.text.replaceAll("\n", " "),
  target: run.url ? linkTarget(run.url) : null,
});

function truncated(runs: readonly Resolved[]): Resolved[] {
  const kept: Resolved[] = [];
  let left = MAX_LINE_CHARACTERS;
  for (const run of runs) {
    left -= run.target?.length ?? 0;
    if (left <= 0) break;
    const isLong = run.text.length > left;
    kept.push(isLong ? { ...run, text: `${run.text.slice(0, left).toWellFormed()}…` } : run);
    left -= run.text.length;
  }
  return kept;
}

/** Joins neighbours of the same look, so that every character is escaped with its real neighbours. */
function merged(runs: readonly Resolved[]): Resolved[] {
  const joined: Resolved[] = [];
  for (const run of runs) {
    const last = joined.at(-1);
    if (run.text === "") continue;
    if (last && hasSameLook(last, run)) {
      joined[joined.length - 1] = { ...last, text: last.text + run.text };
    } else joined.push(run);
  }
  return joined;
}

function hasSameLook(one: Resolved, other: Resolved): boolean {
  if (one.target !== null || other.target !== null || !one.code !== !other.code) return false;
  return marksOf(one) === marksOf(other);
}

/** The marks of emphasis before a run. Code has none. */
function marksOf({ bold, italic, strike, code }: Run): string {
  return code ? "" : `${strike ? "~~" : ""}${bold ? "**" : ""}${italic ? "*" : ""}`;
}

/**
 * Removes emphasis whose marks CommonMark would show as text. A run right after one with emphasis has
 * none, because the marks of both would be read as one.
 */
function withReadableMarks(run: Resolved, index: number, all: readonly Resolved[]): Resolved {
  if (marksOf(run) === "") return run;
  const [before, after] = [edgeOf(all[index - 1], -1), edgeOf(all[index + 1], 0)];
  const [first, last] = [edgeOf({ ...run, ...PLAIN }, 0), edgeOf({ ...run, ...PLAIN }, -1)];
  const isFirstAfterMarks = before === "*" && first.trim() !== "";
  const hasMarksInside = run.strike && (run.bold || run.italic);
  const isReadable = (beside: string, edge: string) =>
    edge.trim() === "" ||
    /^(?:[\s\p{P}$+<=>^`|~]|$)/u.test(beside) ||
    (!hasMarksInside && !/[\p{P}\p{S}]/u.test(edge));
  const keepsMarks = !isFirstAfterMarks && isReadable(before, first) && isReadable(after, last);
  return keepsMarks ? run : { ...run, ...PLAIN };
}

const PLAIN = { bold: false, italic: false, strike: false };

/** The first or last character of a run: `*` for marks after it, `[` for a link or code. */
function edgeOf(run: Resolved | undefined, position: 0 | -1): string {
  if (run === undefined) return "";
  const end = position === 0 ? run.text.slice(0, 2) : run.text.slice(-2);
  const character = Array.from(end).at(position) ?? "";
  if (character.trim() === "") return character;
  if (position === -1 && marksOf(run) !== "") return "*";
  return run.code || run.target !== null ? "[" : character;
}

function renderRun(run: Resolved, isFirst: boolean): string {
  // Emphasis must not begin or end with white space.
  const core = run.text.trim();
  const start = run.text.length - run.text.trimStart().length;
  const before = indentation(run.text.slice(0, start), isFirst);
  if (core === "") return before;
  const marks = marksOf(run);
  const isLineStart = isFirst && marks === "" && run.target === null && !run.code;
  const inner = renderInner(run, core);
  const shown = isLineStart ? inner.replace(LINE_START, "$&\\") : inner;
  return (
    before +
    marks +
    shown +
    marks.split("").reverse().join("") +
    run.text.slice(start + core.length)
  );
}

function renderInner({ target, ...run }: Resolved, text: string): string {
  if (target === null) return run.code ? codeSpan(text) : escapeText(text);
  if (run.image) return `![${escapeLabel(text)}](${target})`;
  // An escaped address would not be recognised.
  if (run.bare && escapeText(text) === text) return text;
  return `[${escapeLabel(text)}](${target})`;
}

/** Spaces at the start of a line would be removed, or make it a code block. */
const indentation = (space: string, isFirst: boolean) =>
  isFirst ? "\u00a0".repeat(Math.min(space.length, 16)) : space;

/** There are no backticks in code: they end it. One space at each end would be removed. */
const codeSpan = (code: string) => (/^ .* $/s.test(code) ? `\` ${code} \`` : `\`${code}\``);

/**
 * Syntax of CommonMark and of the component markup inside a line, and handles. Beside the text there
 * may be marks of emphasis or links, so what depends on its neighbours is escaped at both ends.
 */
const SYNTAX =
  /\\(?=[!-/:-@[-`{-~]|$)|[`~<]|(?<!\s)\*|\*(?!\s)|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])|\](?=[([:])|&(?=#?\w+;)|(?<![a-z0-9])@(?=\w|$)/giu;

/**
 * The place for a backslash at the start of a line that would be a list item, heading, quote, task,
 * underline or the second line of a table.
 */
const LINE_START =
  /^(?:\d{1,9}(?=[.)](?:\s|$))|(?=(?:#{1,6}|[+-])(?:\s|$)|>|\[[ x]\]|[-:|=][-:|=\s]*$))/i;

const escapeText = (text: string) => text.replace(SYNTAX, escapeMark);

const escapeLabel = (text: string) =>
  text
    .replace(SYNTAX, (mark) => (mark === "]" ? mark : escapeMark(mark)))
    .replace(/[[\]]/g, "\\$&");

// Not `\&`: previews remove backslashes before they resolve character references.
const escapeMark = (mark: string) => (mark === "&" ? "&amp;" : `\\${mark}`);

const MAX_URL_CHARACTERS = 2048;

/** Whether the web client would follow a link to the address. */
export function isLinkable(address: string): boolean {
  if (address.length > MAX_URL_CHARACTERS) return false;
  const url = URL.parse(address);
  if (url === null || url.username !== "" || url.password !== "") return false;
  return ["https:", "http:", "mailto:"].includes(url.protocol);
}

/** An address as the target of a Markdown link. Null if it must not be one. */
function linkTarget(address: string): string | null {
  if (!isLinkable(address)) return null;
  const target = new URL(address).href
    .replace(/[^\w\-.~:/?#[\]@!$&'*+,;=%]/g, percentEncode)
    .replace(/(?<![a-z0-9])@/gi, "\\@")
    .replace(/&(?=#?\w+;)/g, "&amp;");
  return target.length > MAX_URL_CHARACTERS ? null : target;
}

const percentEncode = (character: string) =>
  `%${character.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`;
