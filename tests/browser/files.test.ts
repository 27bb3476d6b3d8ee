/// <reference lib="dom" />
import { expect } from "bun:test";
import type { Person } from "@parley/testkit/client.ts";
import { upload } from "@parley/testkit/files.ts";
import type { Page } from "playwright-core";
import { expectNoViolations } from "./axe.ts";
import { png, wav } from "./pictures.ts";
import { groupChat, hasFocus, message, PHONE, say, sharedHarness, test } from "./support.ts";

const harness = sharedHarness();

/** Sends a message with the given files. */
async function sendFiles(
  person: Person,
  chat: { id: string },
  files: Record<string, Uint8Array<ArrayBuffer> | string>,
  content = "",
) {
  const uploaded = [];
  for (const [name, bytes] of Object.entries(files)) {
    uploaded.push(await upload(person, chat.id, name, bytes));
  }
  const file_ids = uploaded.map(({ id }) => id);
  return person.call("sendMessage", { chat_id: chat.id, content, file_ids });
}

const lightbox = (page: Page) => page.getByRole("dialog");

/** Waits until a picture is complete. */
const loaded = (page: Page, name: string) =>
  page.waitForFunction((alt) => {
    const found = document.querySelector<HTMLImageElement>(`img[alt="${alt}"]`);
    return found?.complete && found.naturalWidth > 0;
  }, name);

test("pictures are a grid, and a lightbox shows them one after another by keyboard", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  const names = ["one.png", "two.png", "three.png", "four.png", "five.png", "six.png"];
  await sendFiles(
    bob,
    chat,
    Object.fromEntries(names.map((name, index) => [name, png(60 + index, 40)])),
  );
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await loaded(page, "one.png");
  await page.getByRole("button", { name: "four.png and 2 more" }).getByText("+2").waitFor();
  const second = page.getByRole("button", { name: "two.png" });
  await second.focus();
  await page.keyboard.press("Enter");
  await lightbox(page).getByText("2 of 6").waitFor();
  for (const place of ["3", "4", "5", "6", "6"]) {
    await page.keyboard.press("ArrowRight");
    await lightbox(page).getByText(`${place} of 6`).waitFor();
  }
  await page.waitForFunction(
    () =>
      document.querySelector<HTMLImageElement>("dialog img[alt='six.png']")?.naturalWidth === 65,
  );
  await page.keyboard.press("ArrowLeft");
  await lightbox(page).getByText("5 of 6").waitFor();

  // The focus stays inside.
  for (let times = 0; times < 8; times++) {
    await page.keyboard.press("Tab");
    const isOutside = await page.evaluate(() =>
      Boolean(document.activeElement?.closest("article, form, nav")),
    );
    expect(isOutside).toBe(false);
  }
  await page.keyboard.press("Escape");
  await lightbox(page).waitFor({ state: "detached" });
  expect(await hasFocus(second)).toBe(true);
  expect(visit.problems()).toEqual([]);
});

test("the lightbox zooms by wheel, double click and keys", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await sendFiles(bob, chat, { "map.png": png(300, 200) });
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await page.getByRole("button", { name: "map.png" }).click();
  const picture = lightbox(page).getByRole("img", { name: "map.png" });
  const width = async () => Math.round((await picture.boundingBox())?.width ?? 0);
  await picture.waitFor();
  const whole = await width();
  await picture.dblclick();
  expect(await width()).toBe(whole * 2.5);
  await picture.dblclick();
  expect(await width()).toBe(whole);
  await page.mouse.wheel(0, -200);
  await page.waitForFunction((before) => {
    const shown = document.querySelector("dialog img[alt='map.png']");
    return (shown?.getBoundingClientRect().width ?? 0) > before;
  }, whole);
  await page.keyboard.press("0");
  expect(await width()).toBe(whole);
  await page.keyboard.press("+");
  expect(await width()).toBe(whole * 1.5);
  await lightbox(page).getByRole("button", { name: "Zoom out" }).click();
  expect(await width()).toBe(whole);

  const downloading = page.waitForEvent("download");
  await lightbox(page).getByRole("link", { name: "Download" }).click();
  expect((await downloading).suggestedFilename()).toBe("map.png");
  expect(visit.problems()).toEqual([]);
});

test("the lightbox closes when its message is deleted", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  const { id } = await sendFiles(bob, chat, { "secret.png": png(20, 20) });
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await page.getByRole("button", { name: "secret.png" }).click();
  await lightbox(page).waitFor();
  await bob.call("deleteMessages", { chat_id: chat.id, message_ids: [id] });
  await lightbox(page).waitFor({ state: "detached" });
  expect(await page.getByRole("button", { name: "secret.png" }).count()).toBe(0);
  expect(visit.problems()).toEqual([]);
});

test("nothing moves while pictures load, and there is a placeholder until then", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await say(bob, chat, "Before");
  await sendFiles(bob, chat, { "wide.png": png(640, 300) });
  await sendFiles(bob, chat, { "a.png": png(30, 30), "b.png": png(30, 60), "c.png": png(60, 30) });
  await say(bob, chat, "After");
  await using visit = await harness().visit(ada, { path: "/" });
  const { page } = visit;
  let release = () => {};
  const isReleased = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route("**/files/**", async (route) => {
    await isReleased;
    await route.continue();
  });
  await page.getByRole("link", { name: new RegExp(bob.username) }).click();
  await message(page, "After").waitFor();
  await page.locator("button img[src^='data:']").first().waitFor();
  expect(new URL(page.url()).pathname).toBe(path);
  const places = () =>
    page.getByRole("article").evaluateAll((all) =>
      all.map((each) => {
        const { top, height } = each.getBoundingClientRect();
        return [Math.round(top), Math.round(height)];
      }),
    );
  const before = await places();
  expect(before).toHaveLength(4);
  release();
  for (const name of ["wide.png", "a.png", "b.png", "c.png"]) await loaded(page, name);
  expect(await places()).toEqual(before);
  expect(visit.problems()).toEqual([]);
});

test("files are tiles with a download, audio has a player, and lists describe them", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  const { id } = await sendFiles(bob, chat, { "photo.png": png(20, 20) });
  await bob.call("sendMessage", { chat_id: chat.id, content: "See above", reply_to_id: id });
  await sendFiles(bob, chat, { "note.txt": "hello", "sound.wav": wav(), "page.html": "<p>x</p>" });
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await message(page, "See above").getByText("📷 photo.png").waitFor();
  await page
    .getByRole("link", { name: new RegExp(bob.username) })
    .getByText("3 files")
    .waitFor();
  const player = page.locator("audio");
  await player.waitFor();
  await page.waitForFunction(() => (document.querySelector("audio")?.duration ?? 0) === 1);
  const downloading = page.waitForEvent("download");
  await page.getByRole("link", { name: /^Download page.html 8 bytes/ }).click();
  expect((await downloading).suggestedFilename()).toBe("page.html");

  await page.keyboard.press("Control+k");
  await page.keyboard.type("photo");
  await page.getByRole("option", { name: /photo/ }).getByText("photo.png").waitFor();
  expect(visit.problems()).toEqual([]);
});

test("a picture whose link no longer works is loaded with a new link", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await sendFiles(bob, chat, { "late.png": png(50, 50) });
  await using visit = await harness().visit(ada, { path: "/", networkFails: true });
  const { page } = visit;
  let refused = 0;
  await page.route("**/files/**", (route) => (refused++ === 0 ? route.abort() : route.continue()));
  await page.goto(harness().url + path);
  await loaded(page, "late.png");
  expect(refused).toBe(2);
  expect(visit.problems()).toEqual([]);
});

test("files are accessible in both themes, also on a phone", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await sendFiles(
    bob,
    chat,
    { "a.png": png(30, 30), "b.png": png(30, 60), "c.txt": "text" },
    "Look",
  );
  await sendFiles(bob, chat, { "sound.wav": wav() });
  for (const device of [{}, PHONE]) {
    await using visit = await harness().visit(ada, { path, ...device });
    const { page } = visit;
    await loaded(page, "b.png");
    await expectNoViolations(page);
    await page.getByRole("button", { name: "a.png" }).click();
    await lightbox(page).waitFor();
    await expectNoViolations(page);
    const { width } = page.viewportSize() ?? { width: 0 };
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
    expect(visit.problems()).toEqual([]);
  }
});
