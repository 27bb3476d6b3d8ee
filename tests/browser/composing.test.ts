import { expect } from "bun:test";
import { agentOf } from "@parley/testkit/client.ts";
import type { Page } from "playwright-core";
import { startProxy } from "./proxy.ts";
import { slowAgents } from "./slow-agents.ts";
import {
  agentChat,
  composer,
  giveSandboxKey,
  groupChat,
  message,
  nextFrame,
  pressOn,
  say,
  scroller,
  sharedHarness,
  test,
  untilFocused,
  write,
} from "./support.ts";

const harness = sharedHarness();
const slowPerson = slowAgents();

test("a counter appears near the length limit, and a message over the limit is not sent", async () => {
  const { ada, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  const counter = page.locator("form").getByRole("status");
  const send = page.getByRole("button", { name: "Send" });
  await composer(page).fill("a".repeat(20_000));
  expect(await page.locator("form").getByText("characters").count()).toBe(0);

  await composer(page).fill("a".repeat(32_000));
  await counter.getByText("768 characters left").waitFor();
  expect(await send.isEnabled()).toBe(true);

  // The limit counts bytes, and this letter takes two.
  const tooLong = "é".repeat(16_400);
  await composer(page).fill(tooLong);
  await counter.getByText("Too long by 16 characters.").waitFor();
  expect(await send.isDisabled()).toBe(true);
  await composer(page).press("Enter");
  expect(await composer(page).inputValue()).toBe(tooLong);

  await composer(page).press("End");
  for (let letter = 0; letter < 16; letter++) await composer(page).press("Backspace");
  await composer(page).press("Enter");
  await message(page, "éé").waitFor();
  expect(visit.problems()).toEqual([]);
});

test("a message that could not be sent can be edited and copied", async () => {
  const { ada, chat, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await composer(page).waitFor();
  const content = `Too long ${"a".repeat(33_000)}`;
  // An earlier version of the client sent messages over the limit.
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
  const { ada, chat, path } = await groupChat(harness());
  const { id } = await say(ada, chat, "The first version");
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await message(page, "The first version").waitFor();
  await composer(page).press("ArrowUp");
  await editor(page).fill("The second version");
  await ada.call("deleteMessages", { chat_id: chat.id, message_ids: [id] });
  await message(page, "The first version").waitFor({ state: "detached" });
  await editor(page).press("Enter");
  await page.getByRole("alert").getByText("Not saved: The message was deleted.").waitFor();
  expect(await editor(page).inputValue()).toBe("The second version");

  await editor(page).press("Escape");
  expect(await composer(page).inputValue()).toBe("");
  expect(visit.problems()).toEqual([]);
});

test("a refused edit waits until the edit of another message is done", async () => {
  const { ada, chat, path } = await groupChat(harness());
  const { id } = await say(ada, chat, "The first message");
  await say(ada, chat, "The last message");
  using proxy = startProxy(harness().url);
  await using visit = await harness().visit(ada, { path, url: proxy.url, networkFails: true });
  const { page } = visit;
  const first = message(page, "The first message");
  await pressOn(first, "More");
  await page.getByRole("menuitem", { name: "Edit" }).click();
  await editor(page).fill("A refused edit");
  proxy.disconnect();
  await page.getByText("The server cannot be reached").waitFor();
  await editor(page).press("Enter");
  await composer(page).press("ArrowUp");
  await editor(page).fill("Another edit");
  await ada.call("deleteMessages", { chat_id: chat.id, message_ids: [id] });

  proxy.reconnect();
  await message(page, "A refused edit").waitFor({ state: "detached" });
  expect(await editor(page).inputValue()).toBe("Another edit");
  await editor(page).press("Enter");
  await message(page, "Another edit").waitFor();
  await page.getByRole("alert").getByText("Not saved: The message was deleted.").waitFor();
  expect(await editor(page).inputValue()).toBe("A refused edit");
  expect(visit.problems()).toEqual([]);
});

test("a reply that begins during an edit shows the draft, not the edited text", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await say(bob, chat, "A question");
  await say(ada, chat, "A message of her own");
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  const own = message(page, "A message of her own");
  await own.waitFor();
  await composer(page).fill("A draft");
  await pressOn(own, "More");
  await page.getByRole("menuitem", { name: "Edit" }).click();
  await editor(page).fill("An edit");
  const question = message(page, "A question");
  await pressOn(question, "Reply");
  await page.getByText("Replying to").waitFor();
  expect(await composer(page).inputValue()).toBe("A draft");
  await composer(page).press("End");
  await page.keyboard.type(" that goes on");
  await page.keyboard.press("Enter");
  await message(page, "A draft that goes on").waitFor();
  await own.waitFor();
  expect(visit.problems()).toEqual([]);
});

test("the composer shows Stop while an answer streams, and Send beside it once there is text", async () => {
  const ada = await slowPerson("ada");
  const chat = await ada.call("startChat", { usernames: [agentOf(ada)] });
  await using visit = await harness().visit(ada, { path: `/c/${chat.id}`, url: ada.url });
  const { page } = visit;
  await write(page, "slow");
  await message(page, "I am in no hurry").waitFor();
  const form = page.locator("form");
  await form.getByRole("button", { name: "Stop" }).waitFor();
  expect(await form.getByRole("button", { name: "Send" }).count()).toBe(0);
  await composer(page).fill("And then?");
  await form.getByRole("button", { name: "Send" }).waitFor();
  await form.getByRole("button", { name: "Stop" }).press("Enter");
  await message(page, "Stopped").waitFor();
  await form.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
  await untilFocused(composer(page));
  expect(await composer(page).inputValue()).toBe("And then?");
  expect(visit.problems()).toEqual([]);
});

test("an answer offers «Answer again» after its question was edited, also after a reload", async () => {
  const { ada, path } = await agentChat(harness());
  await using visit = await harness().visit(ada, { path });
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
  await answer.getByRole("button", { name: "Answer again" }).press("Enter");
  await page.getByRole("region", { name: "AAPL price alert" }).waitFor();
  await page.getByText("The question was edited since.").waitFor({ state: "detached" });
  const earlier = message(page, "Earlier answer, 1 of 2");
  expect(await page.getByText("I am the built-in sandbox").count()).toBe(0);
  await untilFocused(earlier);
  await earlier.getByRole("button", { name: "Show" }).press("Enter");
  await message(page, "I am the built-in sandbox").waitFor();
  await untilFocused(earlier.getByRole("button", { name: "Hide" }));
  await page.keyboard.press("Enter");
  await page.getByText("I am the built-in sandbox").waitFor({ state: "detached" });
  expect(visit.problems()).toEqual([]);
});

test("a reply to an agent mentions it, unless it answers every message", async () => {
  const { ada, chat, path } = await groupChat(harness());
  await giveSandboxKey(ada);
  const agent = agentOf(ada);
  await ada.call("addGroupAgent", { chat_id: chat.id, agent_username: agent });
  await say(ada, chat, `@${agent} help`);
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  const answer = message(page, "store a real API key");
  const reply = async () => {
    await pressOn(answer, "Reply");
  };
  await answer.waitFor();
  await page.getByRole("button", { name: "Stop agents" }).waitFor({ state: "detached" });
  const written = (text: string) =>
    page.waitForFunction((value) => document.querySelector("textarea")?.value === value, text);
  await reply();
  await written(`@${agent} `);
  // Escape cancels the reply and removes the handle.
  await composer(page).press("Escape");
  await written("");
  await reply();
  await written(`@${agent} `);
  await composer(page).press("End");
  await page.keyboard.type("alert");
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "AAPL price alert" }).waitFor();

  await ada.call("setGroupAgentMode", {
    chat_id: chat.id,
    agent_username: agent,
    always_on: true,
  });
  await reply();
  // The handle disappears: this agent answers every message.
  await written("");
  await page.keyboard.type("form");
  await written("form");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Submit" }).waitFor();
  const { items } = await ada.call("getChatHistory", { chat_id: chat.id, limit: 2 });
  expect(items[0]?.content).toBe("form");
  expect(visit.problems()).toEqual([]);
});

test("a sent reply scrolls into view from anywhere in the history", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  for (let number = 1; number <= 90; number++) {
    await say(bob, chat, `Message number ${number}, ${"as it is. ".repeat(number % 7)}`);
  }
  await ada.call("readChat", {
    chat_id: chat.id,
    seq: (await ada.call("getChat", { chat_id: chat.id })).seq,
  });
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await message(page, "number 90,").waitFor();
  const old = message(page, "number 30,");
  while (!(await old.isVisible())) {
    await scroller(page).evaluate((box) => box.scrollBy(0, -600));
    await nextFrame(page);
  }
  await pressOn(old, "Reply");
  await page.keyboard.type("I have just read this.");
  await page.keyboard.press("Enter");
  await inSight(page, "I have just read this.");
  expect(visit.problems()).toEqual([]);
});

test("a reply to a message outside of the loaded history shows the latest messages", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  const first = await say(bob, chat, "The very first message");
  for (let number = 1; number <= 130; number++) await say(bob, chat, `Number ${number}.`);
  await using visit = await harness().visit(ada, { path: `${path}#${first.id}` });
  const { page } = visit;
  const found = message(page, "The very first message");
  await pressOn(found, "Reply");
  await page.keyboard.type("I remember that.");
  await page.keyboard.press("Enter");
  await inSight(page, "I remember that.");
  expect(visit.problems()).toEqual([]);
});

/** Waits until the latest message has this text and lies above the composer. */
const inSight = (page: Page, text: string) =>
  page.waitForFunction((words) => {
    const end = [...document.querySelectorAll("article")].at(-1);
    const bottom = end?.getBoundingClientRect().bottom ?? Number.POSITIVE_INFINITY;
    const top = document.querySelector("form")?.getBoundingClientRect().top ?? 0;
    return end?.textContent.includes(words) && bottom <= top;
  }, text);
