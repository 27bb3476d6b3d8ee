import { expect } from "bun:test";
import type { Person } from "@parley/testkit/client.ts";
import { until } from "@parley/testkit/until.ts";
import type { Locator, Page } from "playwright-core";
import { expectNoViolations } from "./axe.ts";
import {
  composer,
  goBack,
  groupChat,
  message,
  nextFrame,
  refuseCalls,
  say,
  scroller,
  sharedHarness,
  test,
  untilFocused,
  write,
} from "./support.ts";

const harness = sharedHarness();

async function history(length: number) {
  const { ada, bob, chat, path } = await groupChat(harness());
  await fill(bob, chat.id, length);
  return { ada, bob, chat, path };
}

async function fill(person: Person, chat_id: string, length: number): Promise<void> {
  for (let number = 1; number <= length; number++) {
    await person.call("sendMessage", { chat_id, content: `Message number ${number}, as it is.` });
  }
}

test("the scroll position is stable while older pages load", async () => {
  const { ada, path } = await history(400);
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await message(page, "Message number 400,").waitFor();
  expect(await page.getByRole("article").count()).toBeLessThan(60);

  const feed = scroller(page);
  let oldest = 400;
  while (oldest > 60) {
    const before = await topmost();
    await feed.evaluate((box) => box.scrollBy(0, -3000));
    await page.waitForFunction(
      (last) => {
        const [first] = document.querySelectorAll<HTMLElement>("article");
        return Number(/number (\d+)/.exec(first?.textContent ?? "")?.[1]) < last;
      },
      before,
      { polling: 30 },
    );
    oldest = await topmost();
  }
  const anchor = message(page, `Message number ${oldest + 12},`);
  const places = new Set<number>();
  for (let look = 0; look < 10; look++) {
    places.add(Math.round((await anchor.boundingBox())?.y ?? Number.NaN));
    await nextFrame(page);
  }
  expect(places.size).toBe(1);

  await page.getByRole("button", { name: "Jump to latest" }).click();
  await message(page, "Message number 400,").waitFor();
  expect(visit.problems()).toEqual([]);

  async function topmost(): Promise<number> {
    const text = (await page.getByRole("article").first().textContent()) ?? "";
    return Number(/number (\d+)/.exec(text)?.[1]);
  }
});

test("messages stay where they are when an older page arrives late", async () => {
  const { ada, chat, path } = await history(150);
  await ada.call("readChat", { chat_id: chat.id, seq: 150 });
  await using visit = await harness().visit(ada);
  const { page } = visit;
  const releaseOlderPage = await holdOlderPages(page);
  await page.goto(harness().url + path);
  await message(page, "Message number 150,").waitFor();

  // First with the oldest message in view, then with the oldest message above the view.
  for (const [oldest, top] of [
    [101, 0],
    [51, 400],
  ] as const) {
    await scrollTo(0);
    const anchor = message(page, `Message number ${oldest + 8},`);
    const place = async () => (await anchor.boundingBox())?.y ?? Number.NaN;
    await message(page, `Message number ${oldest},`).waitFor();
    // New rows move until they are measured.
    for (let last = Number.NaN, now = await place(); now !== last; now = await place()) {
      last = now;
      await nextFrame(page);
    }
    // The page arrives while the person scrolls up.
    await scrollTo(top + 100);
    await nextFrame(page);
    await scrollTo(top);
    await nextFrame(page);
    const before = await place();
    await releaseOlderPage();
    while (((await numbers(page))[0] ?? 0) >= oldest) await nextFrame(page);
    for (let look = 0; look < 5; look++) {
      await nextFrame(page);
      expect(await place()).toBeCloseTo(before, 0);
    }
  }
  expect(visit.problems()).toEqual([]);

  function scrollTo(top: number): Promise<void> {
    return scroller(page).evaluate((box, to) => box.scrollTo(0, to), top);
  }
});

test("a line marks the first unread message, and a button counts new messages below", async () => {
  const { ada, bob, chat, path } = await history(45);
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await page.getByText("New messages", { exact: true }).waitFor();
  await page.getByRole("button", { name: "new messages" }).click();
  await message(page, "Message number 45,").waitFor();
  await scroller(page).evaluate((box) => box.scrollBy(0, -900));
  await page.getByRole("button", { name: "Jump to latest" }).waitFor();
  await fill(bob, chat.id, 2);
  await page.getByRole("button", { name: "2 new messages" }).click();
  await message(page, "Message number 2,").last().waitFor();
  await page.getByRole("button", { name: "2 new messages" }).waitFor({ state: "detached" });
  // The client tells the server a moment after it shows them as read.
  const unread = async () => (await ada.call("getChat", { chat_id: chat.id })).unread_count;
  while ((await unread()) > 0) await nextFrame(page);
  expect(visit.problems()).toEqual([]);
});

test("many unread messages open at the latest, and a button leads to the first of them", async () => {
  const { ada, bob, chat, path } = await history(30);
  await ada.call("readChat", { chat_id: chat.id, seq: 30 });
  await fill(bob, chat.id, 150);
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await isVisible(page, "Message number 150,");
  const line = page.getByText("New messages", { exact: true });
  expect(await line.count()).toBe(0);
  const button = page.getByRole("button", { name: "150 new messages above" });
  await button.waitFor();
  await expectNoViolations(page.getByRole("main"));

  await button.click();
  await button.waitFor({ state: "detached" });
  await line.waitFor();
  const top = async (locator: Locator) => (await locator.boundingBox())?.y ?? Number.NaN;
  const below = message(page, "Message number 1,");
  expect(await top(line)).toBeLessThan(await top(below.last()));
  // The messages before them are loaded last. Both parts have a message with this number.
  const above = message(page, "Message number 30,").first();
  const isBelowIt = async () => (await top(line)) > (await top(above));
  await until(isBelowIt, "the line is below the messages that were read");
  await isVisible(page, "Message number 1,");
  expect(visit.problems()).toEqual([]);
});

test("a search result opens far back without loading the messages in between", async () => {
  const { ada, bob, chat, path } = await history(0);
  await fill(bob, chat.id, 40);
  await say(bob, chat, `The needle is here${"\n\nand hay".repeat(40)}`);
  await fill(bob, chat.id, 560);
  await ada.call("readChat", { chat_id: chat.id, seq: 601 });
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  let pages = 0;
  page.on("websocket", (socket) =>
    socket.on("framesent", ({ payload }) => {
      if (String(payload).includes("getChatHistory")) pages++;
    }),
  );
  await page.reload();
  await message(page, "Message number 560,").waitFor();
  await find(page, "needle");
  // The beginning, because it is longer than the window is high.
  await isVisible(page, "The needle is here", "article p");
  await untilFocused(message(page, "The needle is here"));
  await composer(page).waitFor();
  // The page around the message and those fetched ahead, out of twelve pages.
  expect(pages).toBeLessThan(7);
  expect(await message(page, "Message number 560,").count()).toBe(0);

  // Scrolling down loads later messages in order.
  const feed = scroller(page);
  for (let bottom = await lowest(page); bottom < 500; bottom = await lowest(page)) {
    await feed.evaluate((box) => box.scrollBy(0, 2500));
    await page.waitForFunction(
      (last) => {
        const article = [...document.querySelectorAll<HTMLElement>("article")].at(-1);
        return Number(/number (\d+)/.exec(article?.textContent ?? "")?.[1]) > last;
      },
      bottom,
      { polling: 30 },
    );
    // Numbers restart after the needle, which may still be in the page.
    const all = await numbers(page);
    const shown = all.slice(Math.max(0, all.lastIndexOf(1)));
    expect(shown).toEqual(shown.map((_, index) => (shown[0] ?? 0) + index));
  }
  await say(bob, chat, "Said meanwhile");
  await page.getByRole("button", { name: "1 new message" }).click();
  await isVisible(page, "Said meanwhile");

  // The same search result works a second time.
  await find(page, "needle");
  await untilFocused(message(page, "The needle is here"));
  await write(page, "Found it");
  await message(page, "Found it").getByText("Sent").waitFor();
  await isVisible(page, "Found it");
  // A reload does not go back to the needle.
  expect(new URL(page.url()).hash).toBe("");
  expect(visit.problems()).toEqual([]);
});

test("a conversation opens at the scroll position it was left at", async () => {
  const { ada, bob, chat, path } = await history(120);
  const other = await ada.call("startChat", { usernames: [bob.username], title: "Elsewhere" });
  await say(bob, other, "Quite another thing");
  await ada.call("readChat", { chat_id: chat.id, seq: 120 });
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await message(page, "Message number 120,").waitFor();
  await scroller(page).evaluate((box) => box.scrollBy(0, -1700));
  await page.getByRole("button", { name: "Jump to latest" }).waitFor();
  const anchor = message(page, `Message number ${await topmostVisible(page)},`);
  const before = await anchor.boundingBox();

  await page.getByRole("link", { name: /Elsewhere/ }).click();
  await message(page, "Quite another thing").waitFor();
  await fill(bob, chat.id, 2);
  await page.getByRole("link", { name: /2 unread/ }).click();
  await anchor.waitFor();
  expect((await anchor.boundingBox())?.y).toBeCloseTo(before?.y ?? Number.NaN, 0);
  await page.getByRole("button", { name: "2 new messages" }).click();
  await page.getByRole("button", { name: "2 new messages" }).waitFor({ state: "detached" });

  // A conversation that was left at its end opens at its end, with the new messages.
  await page.getByRole("link", { name: /Elsewhere/ }).click();
  await message(page, "Quite another thing").waitFor();
  await say(bob, chat, "Said at the end");
  await goBack(page);
  await isVisible(page, "Said at the end");
  expect(visit.problems()).toEqual([]);
});

test("messages that cannot be loaded say so, and are loaded by «Try again», also when all later ones are erased", async () => {
  const { ada, bob, chat } = await groupChat(harness());
  await say(bob, chat, "The oldest one");
  await fill(bob, chat.id, 50);
  await ada.call("readChat", { chat_id: chat.id, seq: 51 });
  await using visit = await harness().visit(ada, { path: "/settings" });
  const { page } = visit;
  const refused = await refuseCalls(page);
  refused.add("getChatHistory");
  await page.reload();
  await page.getByRole("link", { name: /number 50/ }).click();
  await page.getByText("The messages could not be loaded").waitFor();
  refused.clear();
  await page.getByRole("button", { name: "Try again" }).click();
  await message(page, "Message number 50,").waitFor();
  expect(await page.getByText("The messages could not be loaded").count()).toBe(0);

  // The loaded messages are erased, and there are older ones.
  const { items } = await bob.call("getChatHistory", { chat_id: chat.id, limit: 50 });
  refused.add("getChatHistory");
  await bob.call("deleteMessages", { chat_id: chat.id, message_ids: items.map(({ id }) => id) });
  await page.getByText("The messages could not be loaded").waitFor();
  expect(await page.getByText("This is where it begins").count()).toBe(0);
  refused.clear();
  await page.getByRole("button", { name: "Try again" }).click();
  await message(page, "The oldest one").waitFor();
  expect(visit.problems()).toEqual([]);
});

/** Holds back every page of older messages; returns a function that waits for one and lets it through. */
async function holdOlderPages(page: Page): Promise<() => Promise<void>> {
  let held = Promise.withResolvers<() => void>();
  await page.routeWebSocket("**", (socket) => {
    const server = socket.connectToServer();
    const older = new Set<unknown>();
    socket.onMessage((frame) => {
      const { method, params, id } = JSON.parse(String(frame));
      if (method === "getChatHistory" && params.before !== undefined) older.add(id);
      server.send(frame);
    });
    server.onMessage((frame) => {
      if (older.delete(JSON.parse(String(frame)).id)) held.resolve(() => socket.send(frame));
      else socket.send(frame);
    });
  });
  return async () => {
    const release = await held.promise;
    held = Promise.withResolvers();
    release();
  };
}

test("a quote is asked for again after a failure, and follows edits and deletions", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  const far = await say(bob, chat, "Said long ago");
  await fill(bob, chat.id, 50);
  const near = await say(bob, chat, "Said just now");
  for (const [content, { id }] of Object.entries({ Far: far, Near: near })) {
    await ada.call("sendMessage", { chat_id: chat.id, content, reply_to_id: id });
  }
  await using visit = await harness().visit(ada, { networkFails: true });
  const { page } = visit;
  const refused = await refuseCalls(page);
  refused.add("getMessage");
  await page.goto(harness().url + path);
  await message(page, "Near").getByText("Said just now").waitFor();
  await page.context().setOffline(true);
  await page.getByText("You are offline").waitFor();
  refused.clear();
  await page.context().setOffline(false);
  await message(page, "Far").getByText("Said long ago").waitFor();

  for (const [name, { id }] of Object.entries({ Far: far, Near: near })) {
    await bob.call("editMessage", { message_id: id, content: `Said better: ${name}` });
    const reply = page.getByRole("article").filter({ has: page.getByText(name, { exact: true }) });
    await reply.getByRole("button", { name: `Said better: ${name}` }).waitFor();
    await bob.call("deleteMessages", { chat_id: chat.id, message_ids: [id] });
    await reply.getByText("The message was deleted.").waitFor();
  }
  expect(visit.problems()).toEqual([]);
});

async function find(page: Page, word: string): Promise<void> {
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").fill(word);
  await page.getByRole("option", { name: new RegExp(word) }).click();
}

/** Waits until a message is completely visible. */
const isVisible = (page: Page, text: string, selector = "article") =>
  page.waitForFunction(
    ([words = "", selector = ""]) => {
      const found = [...document.querySelectorAll(selector)].find((each) =>
        each.textContent.includes(words),
      );
      const box = found?.getBoundingClientRect();
      return box !== undefined && box.top > 0 && box.bottom < innerHeight;
    },
    [text, selector],
  );

/** The numbers of the messages in the page, from top to bottom. */
const numbers = (page: Page): Promise<number[]> =>
  page.evaluate(() =>
    [...document.querySelectorAll<HTMLElement>("article")]
      .toSorted((one, other) => one.getBoundingClientRect().y - other.getBoundingClientRect().y)
      .flatMap(({ textContent }) => /number (\d+)/.exec(textContent)?.[1] ?? [])
      .map(Number),
  );

const lowest = async (page: Page): Promise<number> => (await numbers(page)).at(-1) ?? 0;

const topmostVisible = (page: Page): Promise<number> =>
  page.evaluate(() => {
    const feed = document.querySelector("[role=feed]")?.parentElement?.parentElement;
    const top = feed?.getBoundingClientRect().top ?? 0;
    const first = [...document.querySelectorAll<HTMLElement>("article")]
      .filter((article) => article.getBoundingClientRect().top > top)
      .map(({ textContent }) => Number(/number (\d+)/.exec(textContent)?.[1]))
      .toSorted((one, other) => one - other);
    return first[0] ?? 0;
  });
