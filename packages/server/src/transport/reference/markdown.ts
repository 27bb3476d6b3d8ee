import { type ErrorCode, errorStatus } from "@parley/protocol";
import { allEvents, allOperations } from "./contract.ts";

/** The anchors of operations and events, for links from names in prose. */
const anchors = new Map<string, string>([
  ...allOperations.flatMap(({ name, socket }) => [[name, name] as const, [socket, name] as const]),
  ...allEvents.map(([name]) => [name, name] as const),
]);

/**
 * Renders CommonMark with tables. HTML in it is shown as text, and names of the contract are links. Code
 * can be scrolled with the keyboard.
 */
export function render(text: string): string {
  const linked = text.replace(/`([^`\n]+)`/g, (code, name) =>
    anchors.has(name) ? `[${code}](#${anchors.get(name)})` : code,
  );
  return Bun.markdown
    .html(linked, { noHtmlBlocks: true, noHtmlSpans: true, autolinks: false })
    .replaceAll(/<code class="language-json">.*?<\/code>/gs, highlight)
    .replaceAll("<pre>", '<pre tabindex="0">');
}

const TOKEN =
  /(&quot;(?:\\.|(?!&quot;).)*&quot;)(\s*:)?|\b(?:true|false|null)\b|-?\b\d+(?:\.\d+)?/g;

const highlight = (json: string) =>
  json.replace(TOKEN, (token, string, colon = "") => {
    const kind = colon ? "key" : string ? "str" : "val";
    return `<i class="${kind}">${string ?? token}</i>${colon}`;
  });

export function table(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |`;
  return [titles, titles.map(() => "---"), ...rows].map(line).join("\n");
}

const MAX_LINE = 60;

/** JSON on one line, if it is short. */
export function pretty(value: unknown): string {
  const line = JSON.stringify(value);
  return line.length <= MAX_LINE ? line : JSON.stringify(value, null, 2);
}

export const example = (title: string, value: unknown) =>
  `#### ${title}\n\n\`\`\`json\n${pretty(value)}\n\`\`\``;

export const errorLink = (code: ErrorCode) => `${errorStatus[code]} [\`${code}\`](#error-${code})`;
