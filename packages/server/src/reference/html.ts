import type { ErrorCode } from "@parley/protocol";
import { allEvents, allOperations } from "./contract.ts";

/** Markup that is inserted without escaping. Only `html` creates it, from escaped values. */
class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
  toString() {
    return this.text;
  }
}

export type { Html };

type Part = Html | string | number | false | null | undefined | readonly Part[];

const entities: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

const escaped = (text: string) => text.replace(/[&<>"']/g, (char) => entities[char] ?? char);

function render(part: Part): string {
  if (part instanceof Html) return part.text;
  if (part === false || part === null || part === undefined) return "";
  if (typeof part === "object") return part.map(render).join("");
  return escaped(String(part));
}

/** A template tag that escapes all values that are not `Html`. */
export function html(strings: TemplateStringsArray, ...parts: Part[]): Html {
  return new Html(strings.reduce((text, each, at) => text + render(parts[at - 1]) + each));
}

/** Joins parts with a separator. */
export const joined = (parts: readonly Part[], between: string): Html =>
  html`${parts.map((part, at) => [at > 0 && between, part])}`;

/** The anchors of operations and events, for links from names in prose. */
const anchors = new Map<string, string>([
  ...allOperations.flatMap(({ name, socket }) => [[name, name] as const, [socket, name] as const]),
  ...allEvents.map(([name]) => [name, name] as const),
]);

/** Converts a sentence with `code` between backticks. */
export const words = (text: string): Html =>
  html`${text.split("`").map((part, at) => (at % 2 === 1 ? name(part) : part))}`;

export function name(text: string): Html {
  const anchor = anchors.get(text);
  return anchor ? html`<a href="#${anchor}"><code>${text}</code></a>` : html`<code>${text}</code>`;
}

export const errorName = (code: ErrorCode): Html =>
  html`<a href="#error-${code}"><code>${code}</code></a>`;

/** A block of code with a title. It is focusable, so that it can be scrolled with the keyboard. */
export const panel = (title: string, code: Part): Html => html`<figure class="panel">
<figcaption>${title}</figcaption>
<pre tabindex="0"><code>${code}</code></pre>
</figure>`;

/** JSON with syntax highlighting. */
export function json(value: unknown): Html {
  const text = pretty(value);
  const token = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?/g;
  const parts: Part[] = [];
  let end = 0;
  for (const match of text.matchAll(token)) {
    const [whole, string, colon] = match;
    const kind = colon ? "key" : string ? "str" : "val";
    parts.push(
      text.slice(end, match.index),
      html`<i class="${kind}">${string ?? whole}</i>`,
      colon,
    );
    end = match.index + whole.length;
  }
  return html`${parts}${text.slice(end)}`;
}

/** Formats JSON: what fits on one line stays on one line. */
export function pretty(value: unknown, width = 60): string {
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const list = Array.isArray(value);
  const [open, close] = list ? ["[", "]"] : ["{", "}"];
  const items = Object.entries(value).map(([key, each]) => {
    const label = list ? "" : `${JSON.stringify(key)}: `;
    return label + pretty(each, width - 2 - label.length);
  });
  if (items.length === 0) return open + close;
  const line = list ? `[${items.join(", ")}]` : `{ ${items.join(", ")} }`;
  if (line.length <= width && !line.includes("\n")) return line;
  return `${open}\n${items.join(",\n").replace(/^/gm, "  ")}\n${close}`;
}
