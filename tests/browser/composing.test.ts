import { expect } from "bun:test";
import { agentOf, groupOf, type Person } from "@parley/testkit/client.ts";
import type { Page } from "playwright-core";
import { wireTo } from "./proxy.ts";
import {
  composer,
  giveSandboxKey,
  message,
  prepare,
  scroller,
  sharedHouse,
  test,
  write,
} from "./support.ts";

const house = sharedHouse();

async function direct() {
  const ada = await house().person("ada");
  await giveSandboxKey(ada);
  const chat = await ada.call("startChat", { usernames: [agentOf(ada)] });
  return { ada, chat, path: `/c/${chat.id}` };
}

async function withBob() {
  const [ada, bob] = await Promise.all([house().person("ada"), house().person("bob")]);
  const chat = await groupOf(ada, bob);
  return { ada, bob, chat, path: `/c/${chat.id}` };
}

test("a counter appears near the limit, and too long a message stays in the composer", async () => {
  const { ada, path } = await withBob();
  await using visit = await house().visit(ada, { path });
  const { page } = visit;
  const counter = page.locator("form").getByRole("status");
  const send = page.getByRole("button", { name: "Send" });
  await composer(page).fill("a".repeat(20_000));
  expect(await page.locator("form").getByText("bytes").count()).toBe(0);

  await composer(page).fill("a".repeat(32_000));
  await counter.getByText("768 bytes left").waitFor();
  expect(await send.isEnabled()).toBe(true);

  // The limit is in bytes, of which this letter takes two.
  const tooLong = "é".repeat(16_400);
  await composer(page).fill(tooLong);
  await counter.getByText("Too long by 32 of 32,768 bytes").waitFor();
  expect(await send.isDisabled()).toBe(true);
  await composer(page).press("Enter");
  expect(await composer(page).inputValue()).toBe(tooLong);

  await composer(page).press("End");
  for (let letter = 0; letter < 16; letter++) await composer(page).press("Backspace");
  await composer(page).press("Enter");
  await message(page, "éé").waitFor();
  expect(visit.problems()).toEqual([]);
});

test("a message that could not be sent is edited or copied back", async () => {
  const { ada, chat, path } = await withBob();
  await using visit = await house().visit(ada, { path });
  const { page } = visit;
  await composer(page).waitFor();
  const content = `Too long ${"a".repeat(33_000)}`;
  // As an earlier version of the client has left it behind.
  await page.evaluate(([key, kept]) => localStorage.setItem(key, kept), [
    `parley:outbox:${ada.username}`,
    JSON.stringify([
      {
        id: crypto.randomUUID(),
        chat_id: chat.id,
        content,
        reply_to_id: null,
        created_at: new Date().toISOString(),
        failure: "content must have 1 to 32768 bytes of UTF-8",
      },
    ]),
  ] as const);
  await page.reload();
  const failed = message(page, "Too long aaa");
  await failed.getByText("it is too long").waitFor();
  await failed.getByRole("button", { name: "Copy" }).click();
  await page.getByText("Copied.").waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(content);

  await composer(page).fill("A draft");
  await failed.getByRole("button", { name: "Edit" }).click();
  await failed.waitFor({ state: "detached" });
  expect(await composer(page).inputValue()).toBe(`${content}\n\nA draft`);
  expect(visit.problems()).toEqual([]);
});

const editor = (page: Page) => page.getByRole("textbox", { name: "Edit message" });

test("an edit that the server refuses stays in the composer, with the reason", async () => {
  const { ada, chat, path } = await withBob();
  const { id } = await say(ada, chat.id, "The first version");
  await using visit = await house().visit(ada, { path });
  const { page } = visit;
  await message(page, "The first version").waitFor();
  await composer(page).press("ArrowUp");
  await editor(page).fill("The second version");
  await prepare(ada, "deleteMessages", { chat_id: chat.id, message_ids: [id] });
  await message(page, "The first version").waitFor({ state: "detached" });
  await editor(page).press("Enter");
  await page.getByRole("alert").getByText("Not saved: ").waitFor();
  expect(await editor(page).inputValue()).toBe("The second version");

  await editor(page).press("Escape");
  expect(await composer(page).inputValue()).toBe("");
  expect(visit.problems()).toEqual([]);
});

test("a refused edit waits until the edit of another message is done", async () => {
  const { ada, chat, path } = await withBob();
  const { id } = await say(ada, chat.id, "The first message");
  await say(ada, chat.id, "The last message");
  using wire = wireTo(house().url);
  await using visit = await house().visit(ada, { path, url: wire.url, networkFails: true });
  const { page } = visit;
  const first = message(page, "The first message");
  await first.hover();
  await first.getByRole("button", { name: "More" }).click();
  await page.getByRole("menuitem", { name: "Edit" }).click();
  await editor(page).fill("A refused edit");
  wire.cut();
  await page.getByText("The server cannot be reached").waitFor();
  await editor(page).press("Enter");
  await composer(page).press("ArrowUp");
  await editor(page).fill("Another edit");
  await prepare(ada, "deleteMessages", { chat_id: chat.id, message_ids: [id] });

  wire.mend();
  await message(page, "A refused edit").waitFor({ state: "detached" });
  expect(await editor(page).inputValue()).toBe("Another edit");
  await editor(page).press("Enter");
  await message(page, "Another edit").waitFor();
  await page.getByRole("alert").getByText("Not saved: ").waitFor();
  expect(await editor(page).inputValue()).toBe("A refused edit");
  expect(visit.problems()).toEqual([]);
});

test("Stop is in the composer while an answer streams, and Send beside it once there is text", async () => {
  const { ada, path } = await direct();
  await using visit = await house().visit(ada, { path });
  const { page } = visit;
  await write(page, "slow");
  await message(page, "I am in no hurry").waitFor();
  const form = page.locator("form");
  await form.getByRole("button", { name: "Stop" }).waitFor();
  expect(await form.getByRole("button", { name: "Send" }).count()).toBe(0);
  await composer(page).fill("And then?");
  await form.getByRole("button", { name: "Send" }).waitFor();
  await form.getByRole("button", { name: "Stop" }).click();
  await message(page, "Stopped").waitFor();
  await form.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
  expect(await composer(page).inputValue()).toBe("And then?");
  expect(visit.problems()).toEqual([]);
});

test("an answer to a question that was edited offers to answer again, also after a reload", async () => {
  const { ada, path } = await direct();
  await using visit = await house().visit(ada, { path });
  const { page } = visit;
  await write(page, "help");
  const answer = message(page, "I am the built-in sandbox").first();
  await answer.getByText("store a real API key").waitFor();
  await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
  await composer(page).press("ArrowUp");
  await page.getByRole("textbox", { name: "Edit message" }).fill("alert");
  await page.keyboard.press("Enter");
  await answer.getByText("The question was edited since.").waitFor();
  await page.reload();
  await answer.getByRole("button", { name: "Answer again" }).click();
  await page.getByRole("region", { name: "AAPL price alert" }).waitFor();
  await page.getByText("The question was edited since.").waitFor({ state: "detached" });
  expect(visit.problems()).toEqual([]);
});

test("a reply to an agent that waits to be mentioned mentions it", async () => {
  const { ada, chat, path } = await withBob();
  await giveSandboxKey(ada);
  const agent = agentOf(ada);
  await prepare(ada, "addGroupAgent", { chat_id: chat.id, agent_username: agent });
  await ada.call("sendMessage", { chat_id: chat.id, content: `@${agent} help` });
  await using visit = await house().visit(ada, { path });
  const { page } = visit;
  const answer = message(page, "store a real API key");
  const reply = async () => {
    await answer.hover();
    await answer.getByRole("button", { name: "Reply" }).click();
  };
  await answer.waitFor();
  await page.getByRole("button", { name: "Stop agents" }).waitFor({ state: "detached" });
  await reply();
  await page.waitForFunction(
    (handle) => document.querySelector("textarea")?.value === `@${handle} `,
    agent,
  );
  // Who does not reply after all has an empty composer again.
  await composer(page).press("Escape");
  expect(await composer(page).inputValue()).toBe("");
  await reply();
  await composer(page).press("End");
  await page.keyboard.type("alert");
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "AAPL price alert" }).waitFor();

  await prepare(ada, "setGroupAgentMode", {
    chat_id: chat.id,
    agent_username: agent,
    always_on: true,
  });
  await reply();
  // The handle goes again: this agent answers in any case.
  await page.waitForFunction(() => document.querySelector("textarea")?.value === "");
  await page.keyboard.type("form");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Submit" }).waitFor();
  const { items } = await ada.call("getChatHistory", { chat_id: chat.id, limit: 2 });
  expect(items[0]?.content).toBe("form");
  expect(visit.problems()).toEqual([]);
});

test("one's own reply is in sight, wherever one was reading", async () => {
  const { ada, bob, chat, path } = await withBob();
  for (let number = 1; number <= 90; number++) {
    await say(bob, chat.id, `Message number ${number}, ${"as it is. ".repeat(number % 7)}`);
  }
  await prepare(ada, "readChat", {
    chat_id: chat.id,
    seq: (await ada.call("getChat", { chat_id: chat.id })).seq,
  });
  await using visit = await house().visit(ada, { path });
  const { page } = visit;
  await message(page, "number 90,").waitFor();
  const old = message(page, "number 30,");
  while (!(await old.isVisible())) {
    await scroller(page).evaluate((box) => box.scrollBy(0, -600));
    await page.evaluate(() => new Promise(requestAnimationFrame));
  }
  await old.hover();
  await old.getByRole("button", { name: "Reply" }).click();
  await page.keyboard.type("I have just read this.");
  await page.keyboard.press("Enter");
  await inSight(page, "I have just read this.");
  expect(visit.problems()).toEqual([]);
});

test("a reply to a message from far back leads to the latest messages", async () => {
  const { ada, bob, chat, path } = await withBob();
  const first = await say(bob, chat.id, "The very first message");
  for (let number = 1; number <= 130; number++) await say(bob, chat.id, `Number ${number}.`);
  await using visit = await house().visit(ada, { path: `${path}#${first.id}` });
  const { page } = visit;
  const found = message(page, "The very first message");
  await found.hover();
  await found.getByRole("button", { name: "Reply" }).click();
  await page.keyboard.type("I remember that.");
  await page.keyboard.press("Enter");
  await inSight(page, "I remember that.");
  expect(visit.problems()).toEqual([]);
});

/** Waits until the latest message is the one with this text, and above the composer. */
const inSight = (page: Page, text: string) =>
  page.waitForFunction((words) => {
    const end = [...document.querySelectorAll("article")].at(-1);
    const bottom = end?.getBoundingClientRect().bottom ?? Number.POSITIVE_INFINITY;
    const top = document.querySelector("form")?.getBoundingClientRect().top ?? 0;
    return end?.textContent.includes(words) && bottom <= top;
  }, text);

const say = (who: Person, chat_id: string, content: string) =>
  who.call("sendMessage", { chat_id, content });
