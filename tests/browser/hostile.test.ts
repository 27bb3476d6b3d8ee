import { expect } from "bun:test";
import type { Person } from "@parley/testkit/client.ts";
import { hostileMarkdown } from "@parley/testkit/hostile-markdown.ts";
import { groupChat, message, say, sharedHarness, test, write } from "./support.ts";

const harness = sharedHarness();

async function conversation(contents: string[]): Promise<{ ada: Person; path: string }> {
  const { ada, bob, chat, path } = await groupChat(harness());
  for (const content of ["the beginning", ...contents, "the end"]) {
    await say(bob, chat, content);
  }
  return { ada, path };
}

test("a conversation with hostile messages opens, shows the other messages and sends a reply", async () => {
  const names = ["underlined headings", "long table", "nested emphasis", "block quotes"] as const;
  const { ada, path } = await conversation(names.map((name) => hostileMarkdown[name] ?? ""));
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await message(page, "the end").waitFor();
  await message(page, ">>>>>").waitFor();
  await write(page, "still here");
  await message(page, "still here").waitFor();
  expect(visit.problems()).toEqual([]);
});

test("a message that fails to render is shown as plain text, and the others are unaffected", async () => {
  const { ada, path } = await conversation(["**one** &#57635;", "**two**"]);
  await using visit = await harness().visit(ada);
  const { page } = visit;
  // The parser calls this for every character reference.
  await page.addInitScript(() => {
    const fromCharCode = String.fromCharCode;
    String.fromCharCode = (...codes) => {
      if (codes[0] === 57635) throw new Error("the parser fails");
      return fromCharCode(...codes);
    };
  });
  await page.goto(harness().url + path);
  await message(page, "the end").waitFor();
  await message(page, "**one** &#57635;").waitFor();
  await message(page, "two").locator("strong").waitFor();
});
