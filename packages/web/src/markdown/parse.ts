import MarkdownIt, { type Token } from "markdown-it";

/** Inline Markdown. */
export type Inline =
  | { type: "text" | "codespan"; text: string }
  | { type: "strong" | "em" | "del"; tokens: Inline[] }
  | { type: "link"; href: string; tokens: Inline[] }
  | { type: "image"; href: string; text: string }
  | { type: "br" };

interface ListItem {
  task: boolean;
  checked: boolean;
  tokens: Block[];
}

type Cell = Inline[];

/** A block of Markdown. `raw` is its source; blocks with the same source render the same. */
export type Block = { raw: string } & (
  | { type: "heading"; depth: number; tokens: Inline[] }
  | { type: "paragraph"; tokens: Inline[] }
  /** The text of an item of a tight list. */
  | { type: "text"; tokens: Inline[] }
  | { type: "blockquote"; tokens: Block[] }
  | { type: "list"; ordered: boolean; start: number; items: ListItem[] }
  | { type: "table"; align: (Align | null)[]; header: Cell[]; rows: Cell[][] }
  | { type: "code"; text: string; lang: string | undefined }
  | { type: "hr" }
);

type Align = "left" | "center" | "right";

/** How deep block quotes, lists and items may nest, and likewise inline marks. */
export const MAX_NESTING = 32;
/** Browsers lay out this many nodes without a noticeable pause. */
export const MAX_NODES = 10_000;
/** Longer addresses are not turned into links. */
const MAX_LINK_LENGTH = 2048;

/** Chosen over faster parsers because its time is linear for any input. */
const parser = new MarkdownIt({
  html: false,
  linkify: true,
  breaks: true,
  maxNesting: MAX_NESTING,
});
parser.linkify
  .set({ maxLength: MAX_LINK_LENGTH })
  .add("//", null)
  .add("www.", {
    validate(text, position, { re }) {
      const host = re.get_relative_proto_validator();
      host.lastIndex = position;
      return host.exec(text)?.[0].length ?? 0;
    },
    normalize(match) {
      match.url = `https://${match.url}`;
    },
  });

/**
 * Parses Markdown into a tree that is at most `2 * MAX_NESTING` deep. Returns null for text that
 * nests deeper or has more than `MAX_NODES` nodes, which is to be shown as plain text.
 */
export function parseMarkdown(source: string): Block[] | null {
  const tokens = parser.parse(source, {});
  if (exceedsLimits(tokens)) return null;
  return new TreeBuilder(source, tokens).blocks();
}

function exceedsLimits(tokens: Token[]): boolean {
  let nodes = 0;
  for (const { nesting, level, children } of tokens) {
    // The parser drops blocks that are nested deeper, and does not limit emphasis.
    if (nesting === 1 && level >= MAX_NESTING - 1) return true;
    if (children?.some((child) => child.level > MAX_NESTING)) return true;
    nodes += 1 + (children?.length ?? 0);
  }
  return nodes > MAX_NODES;
}

/** Builds the tree from the parser's flat list, in which every element has an opening and a closing token. */
class TreeBuilder {
  #position = 0;
  readonly #tokens: Token[];
  readonly #source: string;
  readonly #lineStarts = [0];

  constructor(source: string, tokens: Token[]) {
    this.#source = source.replace(/\r\n?/g, "\n");
    this.#tokens = tokens;
    for (let at = this.#source.indexOf("\n"); at >= 0; at = this.#source.indexOf("\n", at + 1)) {
      this.#lineStarts.push(at + 1);
    }
  }

  /** The blocks up to the closing token of the element that contains them. */
  blocks(): Block[] {
    const blocks: Block[] = [];
    for (let token = this.#next(); token && token.nesting !== -1; token = this.#next()) {
      const block = this.#block(token);
      if (block) blocks.push(block);
    }
    return blocks;
  }

  #next(): Token | undefined {
    return this.#tokens[this.#position++];
  }

  #block(token: Token): Block | null {
    const raw = this.#rawOf(token);
    switch (token.type) {
      case "heading_open":
        return { type: "heading", raw, depth: Number(token.tag.slice(1)), tokens: this.#inline() };
      case "paragraph_open":
        return { type: token.hidden ? "text" : "paragraph", raw, tokens: this.#inline() };
      case "blockquote_open":
        return { type: "blockquote", raw, tokens: this.blocks() };
      case "bullet_list_open":
        return { type: "list", raw, ordered: false, start: 1, items: this.#items() };
      case "ordered_list_open": {
        const start = Number(token.attrGet("start") ?? 1);
        return { type: "list", raw, ordered: true, start, items: this.#items() };
      }
      case "table_open":
        return { type: "table", raw, ...this.#table() };
      case "fence":
      case "code_block":
        return {
          type: "code",
          raw,
          text: token.content.replace(/\n$/, ""),
          lang: token.info.trim() || undefined,
        };
      case "hr":
        return { type: "hr", raw };
      default:
        return null;
    }
  }

  #rawOf({ map }: Token): string {
    return map ? this.#source.slice(this.#lineStarts[map[0]], this.#lineStarts[map[1]]) : "";
  }

  /** The text of a heading, paragraph or cell, with its closing token. */
  #inline(): Inline[] {
    const content = this.#next();
    this.#position++;
    return inlineTree(content?.children ?? []);
  }

  #items(): ListItem[] {
    const items: ListItem[] = [];
    for (let token = this.#next(); token?.type === "list_item_open"; token = this.#next()) {
      items.push(asTask(this.blocks()));
    }
    return items;
  }

  #table() {
    const header: Cell[] = [];
    const rows: Cell[][] = [];
    const align: (Align | null)[] = [];
    for (let token = this.#next(); token && token.type !== "table_close"; token = this.#next()) {
      if (token.type === "th_open") {
        align.push(alignOf(token));
        header.push(this.#inline());
      } else if (token.type === "td_open") rows.at(-1)?.push(this.#inline());
      else if (token.type === "tr_open" && align.length > 0) rows.push([]);
    }
    return { align, header, rows };
  }
}

function alignOf(token: Token): Align | null {
  const align = String(token.attrGet("style") ?? "").replace("text-align:", "");
  return align === "left" || align === "center" || align === "right" ? align : null;
}

const TASK_MARK = /^\[([ x])\] +(?=\S)/i;

function asTask(tokens: Block[]): ListItem {
  const first = tokens[0];
  const text = first?.type === "text" || first?.type === "paragraph" ? first.tokens[0] : undefined;
  const mark = text?.type === "text" ? TASK_MARK.exec(text.text) : null;
  if (!mark || text?.type !== "text") return { task: false, checked: false, tokens };
  text.text = text.text.slice(mark[0].length);
  return { task: true, checked: mark[1] !== " ", tokens };
}

const spans = { strong_open: "strong", em_open: "em", s_open: "del" } as const;
const isSpan = (type: string): type is keyof typeof spans => Object.hasOwn(spans, type);

function inlineTree(flat: Token[]): Inline[] {
  const root: Inline[] = [];
  const open: Inline[][] = [];
  let siblings = root;
  const enter = (node: Extract<Inline, { tokens: Inline[] }>) => {
    siblings.push(node);
    open.push(siblings);
    siblings = node.tokens;
  };
  for (const token of flat) {
    if (token.nesting === -1) siblings = open.pop() ?? root;
    else if (isSpan(token.type)) enter({ type: spans[token.type], tokens: [] });
    else if (token.type === "link_open") {
      enter({ type: "link", href: attribute(token, "href"), tokens: [] });
    } else siblings.push(leafOf(token));
  }
  return root;
}

function leafOf(token: Token): Inline {
  if (token.type === "softbreak" || token.type === "hardbreak") return { type: "br" };
  if (token.type === "code_inline") return { type: "codespan", text: token.content };
  if (token.type === "image") {
    return { type: "image", href: attribute(token, "src"), text: token.content };
  }
  return { type: "text", text: token.content };
}

const attribute = (token: Token, name: string) => String(token.attrGet(name) ?? "");
