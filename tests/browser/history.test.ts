import { expect } from "bun:test";
import { groupOf, type Person } from "../support/client.ts";
import { composer, message, scroller, sharedHouse, test, write } from "./support.ts";

const house = sharedHouse();

async function history(length: number) {
  const [ada, bob] = await Promise.all([house().person("ada"), house().person("bob")]);
  const chat = await groupOf(ada, bob);
  await fill(bob, chat.id, length);
  return { ada, bob, chat, path: `/c/${chat.id}` };
}

async function fill(person: Person, chat_id: string, length: number): Promise<void> {
  for (let number = 1; number <= length; number++) {
    await person.call("sendMessage", { chat_id, content: `Message number ${number}, as it is.` });
  }
}

test("a long history stays where it is while older pages load above", async () => {
  const { ada, path } = await history(400);
  await using visit = await house().visit(ada, { path });
  const { page } = visit;
  await page.getByRole("button", { name: "new messages" }).click();
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
  // Where the eye rests nothing moves, however much is put above it.
  const anchor = message(page, `Message number ${oldest + 12},`);
  const places = new Set<number>();
  for (let look = 0; look < 10; look++) {
    places.add(Math.round((await anchor.boundingBox())?.y ?? Number.NaN));
    await page.evaluate(() => new Promise(requestAnimationFrame));
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

test("a line shows what is new, and a button counts what came below", async () => {
  const { ada, bob, chat, path } = await history(60);
  await using visit = await house().visit(ada, { path });
  const { page } = visit;
  await page.getByText("New messages", { exact: true }).waitFor();
  await page.getByRole("button", { name: "new messages" }).click();
  await message(page, "Message number 60,").waitFor();
  await scroller(page).evaluate((box) => box.scrollBy(0, -900));
  await page.getByRole("button", { name: "Jump to latest" }).waitFor();
  await fill(bob, chat.id, 2);
  await page.getByRole("button", { name: "2 new messages" }).click();
  await message(page, "Message number 2,").last().waitFor();
  await page.getByRole("button", { name: "2 new messages" }).waitFor({ state: "detached" });
  const { unread_count } = await ada.call("getChat", { chat_id: chat.id });
  expect(unread_count).toBe(0);
  expect(visit.problems()).toEqual([]);
});

test("a search finds an old message and leads to it", async () => {
  const { ada, bob, chat, path } = await history(0);
  await bob.call("sendMessage", { chat_id: chat.id, content: "The needle is here" });
  await fill(bob, chat.id, 150);
  await using visit = await house().visit(ada, { path });
  const { page } = visit;
  await composer(page).waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").fill("needle");
  await page.getByRole("option", { name: /needle/ }).click();
  await message(page, "The needle is here").waitFor();
  await page.waitForFunction(() => {
    const found = [...document.querySelectorAll("article")].find((article) =>
      article.textContent.includes("The needle"),
    );
    const box = found?.getBoundingClientRect();
    return box !== undefined && box.top > 0 && box.bottom < innerHeight;
  });
  await write(page, "Found it");
  await message(page, "Found it").getByText("Sent").waitFor();
  expect(visit.problems()).toEqual([]);
});
