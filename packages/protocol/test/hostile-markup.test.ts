import { describe, expect, test } from "bun:test";
import { inertName, inertText, parseMarkup, plainText, quotedText } from "../src/markup/index.ts";

const BUTTON = '<button action="a">A</button>';

// CPU time, which is the same on a busy machine: what is not linear takes minutes.
describe("parsing time is linear for", () => {
  const parts = [
    ...["<", "<card ", '<card title="', "<card title='a' ", '<card title="t">', "</card>"],
    ...['<button action="a">', BUTTON, '<form id="f">', '<form id="f"><select name="s">'],
    ...["`", "` ", "\\`` ", "\\", "\n", " ", "    \n", "> ", "- ", "* ", "1. ", "- \n", ">\n"],
    ...["```\n", "~~~", "#", "# `\n", "[", "[](", "&", "&#", "_", "a=", "x", "<card a='<card b=\""],
    ...["</button", "<option>", "=\n", "-\n", "<card\n", "<card `", "👍"],
  ];
  const fill = (part: string, length: number) => part.repeat(length / part.length);
  const long = 200_000;
  const inputs = parts.map((part): [string, string] => [
    `${JSON.stringify(part)}, repeated`,
    fill(part, long),
  ]);
  const runs = Array.from({ length: 600 }, (_, n) => `${"`".repeat(n + 1)} <card>`).join("");
  inputs.push(["longer and longer runs of backticks", runs]);
  inputs.push(["deep quotes and blank lines", fill("> - ", 4000) + fill("\n>", long)]);
  inputs.push(["blank lines before text", `${fill("\n", long)}x${fill(" \n", long)}y`]);
  inputs.push(["lines in a card", `<card>${fill("\n", long)}x${fill("\n  x", long)}</card>`]);
  inputs.push(["open cards and lines", fill("<card>", long / 2) + fill("\n x", long / 2)]);
  inputs.push(["a megabyte of everything", parts.map((part) => fill(part, 25_000)).join("\n\n")]);

  for (const [name, input] of inputs) {
    test(name, () => {
      const before = process.cpuUsage();
      parseMarkup(input);
      parseMarkup(input, { streaming: true });
      plainText(input);
      inertText(input);
      inertName(input);
      quotedText(input);
      const { user, system } = process.cpuUsage(before);
      expect(user + system).toBeLessThan(4_000_000);
    });
  }
});
