import { describe, expect, test } from "bun:test";
import { type Block, MAX_NESTING, parseMarkdown } from "../src/markdown/parse.ts";

/** The tree in a short form: types with their contents in parentheses. */
function outline(source: string): string {
  return parseMarkdown(source)?.map(block).join(" ") ?? "plain text";
}

function block(node: Block): string {
  switch (node.type) {
    case "heading":
      return `h${node.depth}(${inline(node.tokens)})`;
    case "paragraph":
      return `p(${inline(node.tokens)})`;
    case "text":
      return inline(node.tokens);
    case "blockquote":
      return `quote(${node.tokens.map(block).join(" ")})`;
    case "list": {
      const items = node.items.map(({ task, checked, tokens }) => {
        const mark = task ? (checked ? "done " : "todo ") : "";
        return mark + tokens.map(block).join(" ");
      });
      return `${node.ordered ? `ol${node.start}` : "ul"}(${items.join(", ")})`;
    }
    case "table": {
      const rows = [node.header, ...node.rows].map((row) => row.map(inline).join("|"));
      return `table[${node.align.join()}](${rows.join(", ")})`;
    }
    case "code":
      return `code ${node.lang}(${node.text})`;
    case "hr":
      return "hr";
  }
}

type Inlines = Extract<Block, { type: "paragraph" }>["tokens"];

function inline(nodes: Inlines): string {
  return nodes
    .map((node) => {
      if (node.type === "br") return "↵";
      if (node.type === "image") return `image(${node.text} → ${node.href})`;
      if (node.type === "link") return `link(${inline(node.tokens)} → ${node.href})`;
      if ("tokens" in node) return `${node.type}(${inline(node.tokens)})`;
      return node.type === "text" ? node.text : `code(${node.text})`;
    })
    .join("");
}

describe("Markdown is parsed into a tree", () => {
  test.each([
    ["# Title\n\ntext", "h1(Title) p(text)"],
    ["one\ntwo", "p(one↵two)"],
    ["*a* **b *c*** ~~d~~ `e`", "p(em(a) strong(b em(c)) del(d) code(e))"],
    ["- one\n- two\n  - three", "ul(one, two ul(three))"],
    ["- one\n\n- two", "ul(p(one), p(two))"],
    ["3. one\n4. two", "ol3(one, two)"],
    ["- [ ] one\n- [x] two\n- [ ]three", "ul(todo one, done two, [ ]three)"],
    ["> a\n> > b", "quote(p(a) quote(p(b)))"],
    ["a|b\n:-|-:\n1|*2*\n3|4", "table[left,right](a|b, 1|em(2), 3|4)"],
    ["```ts\nlet a;\n```", "code ts(let a;)"],
    ["    indented", "code undefined(indented)"],
    ["a\n\n---\n\nb", "p(a) hr p(b)"],
    ["[a *b*](https://x.example)", "p(link(a em(b) → https://x.example))"],
    ["![a](https://x.example/y.png)", "p(image(a → https://x.example/y.png))"],
    ["https://x.example/y, and", "p(link(https://x.example/y → https://x.example/y), and)"],
    ["www.x.example", "p(link(www.x.example → https://www.x.example))"],
    ["me@x.example", "p(link(me@x.example → mailto:me@x.example))"],
    ["README.md and //x.example", "p(README.md and //x.example)"],
    ["&lt;b&gt; &copy; \\*", "p(<b> © *)"],
    ["<b>bold</b>\n\n<div>", "p(<b>bold</b>) p(<div>)"],
    ["[a](javascript:alert(1))", "p([a](javascript:alert(1)))"],
  ])("%j becomes %j", (source, tree) => {
    expect(outline(source)).toBe(tree);
  });

  test("a block has its source", () => {
    const sources = parseMarkdown("# a\r\n\r\nb\nc\n\n- d\n")?.map(({ raw }) => raw.trim());
    expect(sources).toEqual(["# a", "b\nc", "- d"]);
  });

  test("text that nests too deep is shown as plain text", () => {
    expect(outline(`${"> ".repeat(MAX_NESTING - 2)}word`)).toContain("word");
    expect(outline(`${"> ".repeat(MAX_NESTING)}word`)).toBe("plain text");
    expect(outline(`${"*a ".repeat(MAX_NESTING)}word${"*".repeat(MAX_NESTING)}`)).toContain("word");
    expect(outline("*a ".repeat(100) + "word*".repeat(100))).toBe("plain text");
  });

  test("text with too many nodes is shown as plain text", () => {
    expect(outline("- a\n".repeat(8000))).toBe("plain text");
  });
});
