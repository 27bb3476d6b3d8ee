import { expect } from "bun:test";
import { agentOf, groupOf } from "@parley/testkit/client.ts";
import type { Page } from "playwright-core";
import {
  agentChat,
  composer,
  giveSandboxKey,
  goBack,
  groupChat,
  hasFocus,
  message,
  nextFrame,
  say,
  scroller,
  sharedHarness,
  showsBriefly,
  test,
  write,
} from "./support.ts";

const harness = sharedHarness();

test("a pressed button gets a reply, and its card collapses to the outcome", async () => {
  const { ada, path } = await agentChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await write(page, "buy");
  const card = page.getByRole("region", { name: "Buy 10 AAPL" });
  await card.getByRole("button", { name: "Buy 10 AAPL" }).click();
  const outcome = card.getByRole("button", { name: /Buy 10 AAPL · You · / });
  await outcome.waitFor();
  // The header that replaces the button has the focus.
  expect(await hasFocus(outcome)).toBe(true);
  const reply = message(page, "Buy order placed");
  await reply.getByText("AAPL", { exact: false }).first().waitFor();
  await reply.getByText("You pressed «Buy 10 AAPL»").waitFor();

  expect(await card.getByRole("button", { name: "Cancel" }).count()).toBe(0);
  await outcome.press("Enter");
  await card.getByRole("button", { name: "Cancel" }).click();
  await card.getByRole("button", { name: /Cancel · You · / }).waitFor();
  expect(visit.problems()).toEqual([]);
});

test("everybody sees who used a component, and a second use needs confirmation", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await giveSandboxKey(ada);
  await ada.call("addGroupAgent", { chat_id: chat.id, agent_username: agentOf(ada) });
  await using first = await harness().visit(ada, { path });
  await using second = await harness().visit(bob, { path });
  await write(first.page, `@${agentOf(ada)} buy`);
  const card = (page: Page) => page.getByRole("region", { name: "Buy 10 AAPL" });
  const outcome = (page: Page, who: string) =>
    card(page).getByRole("button", { name: new RegExp(`Buy 10 AAPL · ${who} · `) });
  await card(second.page).getByRole("button", { name: "Buy 10 AAPL" }).click();
  await outcome(second.page, "You").waitFor();
  await outcome(first.page, bob.username).waitFor();
  await message(first.page, `${bob.username} pressed «Buy 10 AAPL»`).waitFor();
  await message(first.page, "Buy order placed").waitFor();
  await first.page.reload();
  await outcome(first.page, bob.username).click();
  expect(await card(first.page).getByText(`· ${bob.username} ·`).count()).toBe(1);

  const pressed = card(first.page).getByRole("button", { name: "Buy 10 AAPL", exact: true });
  await pressed.click();
  const confirmation = first.page.getByRole("dialog", { name: "«Buy 10 AAPL» again?" });
  await confirmation.getByText(`${bob.username} did that already`).waitFor();
  await confirmation.getByRole("button", { name: "Leave it" }).click();
  await confirmation.waitFor({ state: "detached" });
  await message(first.page, "Buy order placed").first().waitFor();
  expect(await message(first.page, "Buy order placed").count()).toBe(1);
  await pressed.click();
  await confirmation.getByRole("button", { name: "Press again" }).click();
  await message(first.page, "Buy order placed").nth(1).waitFor();
  await outcome(second.page, ada.username).waitFor();
  expect([...first.problems(), ...second.problems()]).toEqual([]);
});

test("a form is submitted with its values, and a second time only after confirmation", async () => {
  const { ada, path } = await agentChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await write(page, "form");
  const form = page.getByRole("group", { name: "Form of Claude" });
  const fill = async () => {
    await form.getByLabel("Your name").fill("Ada");
    await form.getByLabel("Your rating, as a number").fill("9");
    await form.getByLabel("Topic").selectOption("Question");
    await form.getByRole("button", { name: "Submit", exact: true }).click();
  };
  await form.getByRole("button", { name: "Submit" }).waitFor();
  await fill();
  const outcome = page.getByRole("button", { name: /Submitted · You · / });
  await outcome.waitFor();
  expect(await form.getByRole("button", { name: "Submit", exact: true }).count()).toBe(0);
  const result = page.getByRole("region", { name: "Form submitted" });
  await result.getByText("Question").waitFor();
  await result.getByText("Your rating, as a number: 9").waitFor();
  await message(page, "You submitted the form").waitFor();

  await outcome.click();
  expect(await form.getByLabel("Your name").inputValue()).toBe("");
  await fill();
  await page.getByRole("dialog").getByRole("button", { name: "Submit again" }).click();
  await result.nth(1).waitFor();
  expect(visit.problems()).toEqual([]);
});

test("an optional select in which nothing is chosen submits nothing", async () => {
  const { ada, path } = await agentChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await write(page, "form");
  const form = page.getByRole("group", { name: "Form of Claude" });
  await form.getByLabel("Your name").fill("Ada");
  await form.getByLabel("Your rating, as a number").fill("9");
  await form.getByRole("button", { name: "Submit" }).click();
  const result = page.getByRole("region", { name: "Form submitted" });
  await result.getByText("Your rating, as a number: 9").waitFor();
  expect(await result.innerText()).not.toMatch(/Praise|Question|Problem/);
  expect(visit.problems()).toEqual([]);
});

test("the values of a form survive scrolling and a reload until it is submitted", async () => {
  const { ada, chat, path } = await agentChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await write(page, "form");
  const form = page.getByRole("group", { name: "Form of Claude" });
  await form.getByRole("button", { name: "Submit" }).waitFor();
  await form.getByLabel("Your name").fill("Ada");
  await form.getByLabel("Topic").selectOption("Problem");
  const typed = async () => [
    await form.getByLabel("Your name").inputValue(),
    await form.getByLabel("Topic").inputValue(),
  ];
  const bob = await harness().person("bob");
  const other = await groupOf(ada, bob);
  for (let number = 1; number <= 40; number++) {
    await say(bob, other, `Number ${number}`);
  }
  // The form leaves the page twice: with another conversation, then by scrolling.
  await page.getByRole("link", { name: bob.username }).click();
  await form.waitFor({ state: "detached" });
  await goBack(page);
  await form.waitFor();
  expect(await typed()).toEqual(["Ada", "Problem"]);

  await ada.call("removeAgentKey", { provider: "claude" });
  for (let number = 1; number <= 40; number++) {
    await say(ada, chat, `Number ${number}`);
  }
  await scroller(page).evaluate((box) => box.scrollTo(0, box.scrollHeight));
  await form.waitFor({ state: "detached" });
  // The list may still follow the messages that arrive.
  const scrollToForm = async () => {
    while (!(await form.isVisible())) {
      await scroller(page).evaluate((box) => box.scrollTo(0, 0));
      await nextFrame(page);
    }
  };
  await scrollToForm();
  expect(await typed()).toEqual(["Ada", "Problem"]);

  await page.reload();
  await composer(page).waitFor();
  await page.getByRole("feed").waitFor();
  await scrollToForm();
  expect(await typed()).toEqual(["Ada", "Problem"]);
  expect(visit.problems()).toEqual([]);
});

test("a form shows errors beside their fields", async () => {
  const { ada, path } = await agentChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await write(page, "form");
  const form = page.getByRole("group", { name: "Form of Claude" });
  await form.getByRole("button", { name: "Submit" }).click();
  const name = form.getByLabel("Your name");
  const errorOf = (field: typeof name) =>
    field.evaluate(
      (element) =>
        document.getElementById(element.getAttribute("aria-describedby") ?? "")?.textContent,
    );
  await form.getByText("Please fill this in.").first().waitFor();
  expect(await errorOf(name)).toBe("Please fill this in.");
  expect(await hasFocus(name)).toBe(true);
  await name.fill("Ada");
  expect(await errorOf(name)).toBeUndefined();
  await form.getByLabel("E-mail").fill("nowhere");
  await form.getByLabel("Your rating, as a number").fill("7");
  await form.getByRole("button", { name: "Submit" }).click();
  await form.getByRole("alert").filter({ hasText: "@" }).waitFor();
  await form.getByLabel("E-mail").fill("ada@example.com");
  await form.getByRole("button", { name: "Submit" }).click();
  await page.getByRole("region", { name: "Form submitted" }).waitFor();
  expect(visit.problems()).toEqual([]);
});

test("a message runs no script, loads nothing and does not overflow", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await composer(page).waitFor();
  const requested: string[] = [];
  page.on("request", (request) => requested.push(request.url()));
  const hostile = [
    "<script>document.title = 'gone'</script>",
    "<img src=x onerror=\"document.title='gone'\">",
    "[press](javascript:document.title='gone')",
    "[data](data:text/html,<script>1</script>)",
    "![picture](https://evil.example/pixel.png)",
    '<iframe src="https://evil.example"></iframe><style>*{display:none}</style>',
    '<card title="A card"><button action="trade:buy:A:1" onclick="document.title=1">Not for people</button></card>',
    `${"wide".repeat(400)}`,
    "the end",
  ];
  for (const content of hostile) await say(bob, chat, content);
  await message(page, "the end").waitFor();
  await message(page, "<script>document.title = 'gone'</script>").waitFor();
  await message(page, "<iframe").waitFor();
  expect(await page.title()).not.toContain("gone");
  expect(await page.locator("article :is(script, img, iframe, style)").count()).toBe(0);
  expect(await page.getByRole("link", { name: "press" }).count()).toBe(0);
  expect(await page.getByRole("link", { name: "data" }).count()).toBe(0);
  expect(await page.getByRole("link", { name: "picture" }).getAttribute("rel")).toContain(
    "noopener noreferrer",
  );
  // Only an agent's components can be pressed.
  expect(await page.getByRole("button", { name: "Not for people" }).isDisabled()).toBe(true);
  expect(
    requested.filter((url) => !url.startsWith(harness().url) && !url.startsWith("ws")),
  ).toEqual([]);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  expect(overflow).toBeLessThanOrEqual(0);
  expect(visit.problems()).toEqual([]);
});

test("code is highlighted and can be copied, and tables are rendered", async () => {
  const { ada, path } = await agentChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await write(page, "```ts\nconst answer: number = 42;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |");
  const own = page.getByRole("article").first();
  await own.locator(".hl-keyword", { hasText: "const" }).waitFor();
  const copy = own.getByRole("button", { name: "Copy", exact: true });
  await showsBriefly(own.getByRole("button", { name: "Copied" }), () => copy.click());
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(
    "const answer: number = 42;",
  );
  await own.getByRole("columnheader", { name: "a" }).waitFor();
  expect(visit.problems()).toEqual([]);
});

test("text has its own direction, table cells do not break words, and emoji alone are large", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  const said = [
    "مرحبا بالجميع",
    "- نقطة\n- أخرى",
    "| Word | Figure |\n|---|--:|\n| unbreakable | 1234 |",
    "🎉🎉",
    "the end",
  ];
  for (const content of said) await say(bob, chat, content);
  const phone = { viewport: { width: 360, height: 740 } };
  await using visit = await harness().visit(ada, { path, ...phone });
  const { page } = visit;
  await message(page, "the end").waitFor();
  const style = (text: string, selector: string, name: "direction" | "textAlign" | "fontSize") =>
    message(page, text)
      .locator(selector)
      .first()
      .evaluate((element, property) => getComputedStyle(element)[property], name);
  expect(await style("مرحبا", "p[dir]", "direction")).toBe("rtl");
  expect(await style("نقطة", "ul", "direction")).toBe("rtl");
  expect(await style("the end", "p[dir]", "direction")).toBe("ltr");
  expect(await style("unbreakable", "td:last-child", "textAlign")).toBe("right");
  const word = message(page, "unbreakable").locator("td").first();
  expect((await word.boundingBox())?.height).toBeLessThan(40);
  const size = async (text: string) => Number.parseFloat(await style(text, ".prose", "fontSize"));
  expect(await size("🎉🎉")).toBeGreaterThan(await size("the end"));
  expect(visit.problems()).toEqual([]);
});
