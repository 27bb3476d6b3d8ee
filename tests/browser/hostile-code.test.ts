import { afterAll, describe, expect, test } from "bun:test";
import {
  type CodeNode,
  highlight,
  MAX_CODE_NESTING,
} from "../../packages/web/src/markdown/highlight.ts";

const textOf = (node: CodeNode | string): string =>
  typeof node === "string" ? node : node.children.map(textOf).join("");

const nesting = (node: CodeNode | string): number =>
  typeof node === "string" ? 0 : 1 + Math.max(0, ...node.children.map(nesting));

const report: string[] = [];

describe("hostile code is highlighted within limits and shown completely", () => {
  const CODE_CHARACTERS = 32_000;

  test.each([
    ["one long word", "java", "a"],
    ["words as long as a line may be", "java", `${"a".repeat(1000)}\n`],
    ["links that do not end", "markdown", "["],
    ["empty lines", "javascript", "\n"],
    ["nested templates on one line", "javascript", "`$" + "{"],
    ["nested templates", "javascript", "`$" + "{\n"],
    ["nested comments", "rust", "/*\n"],
    ["nested expansions", "bash", "$" + "{\n"],
  ])("such as %s", (name, language, unit) => {
    const code = unit.repeat(CODE_CHARACTERS / unit.length);
    const start = performance.now();
    const tree = highlight(code, language);
    report.push(`${name.padEnd(32)} highlighted in ${(performance.now() - start).toFixed(0)} ms`);
    expect(tree && nesting(tree)).toBeLessThanOrEqual(MAX_CODE_NESTING + 1);
    expect(tree && textOf(tree)).toBe(code);
  });

  test("a long line stays plain text while the others are highlighted", () => {
    const long = `${"a".repeat(CODE_CHARACTERS)}\n`;
    const code = `return 1;\n${long}return 2;\n`;
    // A busy machine may need longer for the first line than a page gives it.
    const children = highlight(code, "java", Number.POSITIVE_INFINITY)?.children ?? [];
    expect(children).toContain(long);
    expect(children.filter((child) => typeof child !== "string").map(textOf)).toEqual([
      "return",
      "1",
      "return",
      "2",
    ]);
  });
});

afterAll(() => process.stdout.write(`\n${report.join("\n")}\n`));
