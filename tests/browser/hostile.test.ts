import { expect } from "bun:test";
import { groupOf, type Person } from "@parley/testkit/client.ts";
import { hostileMarkdown } from "@parley/testkit/hostile-markdown.ts";
import { message, sharedHouse, test, write } from "./support.ts";

const house = sharedHouse();

async function conversation(contents: string[]): Promise<{ ada: Person; path: string }> {
  const [ada, bob] = await Promise.all([house().person("ada"), house().person("bob")]);
  const chat = await groupOf(ada, bob);
  for (const content of ["the beginning", ...contents, "the end"]) {
    await bob.call("sendMessage", { chat_id: chat.id, content });
  }
  return { ada, path: `/c/${chat.id}` };
}

test("a conversation with hostile messages opens, shows the others and takes a reply", async () => {
  const names = ["underlined headings", "long table", "nested emphasis", "block quotes"] as const;
  const { ada, path } = await conversation(names.map((name) => hostileMarkdown[name] ?? ""));
  await using visit = await house().visit(ada, { path });
  const { page } = visit;
  await message(page, "the end").waitFor();
  await message(page, ">>>>>").waitFor();
  await write(page, "still here");
  await message(page, "still here").waitFor();
  expect(visit.problems()).toEqual([]);
});

test("a message that fails to render is shown as plain text, and the others as ever", async () => {
  const { ada, path } = await conversation(["**one** &#57635;", "**two**"]);
  await using visit = await house().visit(ada);
  const { page } = visit;
  // The parser turns a character reference into its character with this.
  await page.addInitScript(() => {
    const fromCharCode = String.fromCharCode;
    String.fromCharCode = (...codes) => {
      if (codes[0] === 57635) throw new Error("the parser fails");
      return fromCharCode(...codes);
    };
  });
  await page.goto(house().url + path);
  await message(page, "the end").waitFor();
  await message(page, "**one** &#57635;").waitFor();
  await message(page, "two").locator("strong").waitFor();
});
