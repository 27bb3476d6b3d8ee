/// <reference lib="dom" />
import { expect } from "bun:test";
import { expectNoViolations } from "./axe.ts";
import { lightbox, loaded, sendFiles } from "./files.ts";
import { png } from "./pictures.ts";
import {
  goBack,
  groupChat,
  hasFocus,
  nextFrame,
  PHONE,
  say,
  sharedHarness,
  test,
} from "./support.ts";

const harness = sharedHarness();

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

test("arrows go across the pictures of the whole conversation, and «back» closes", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await sendFiles(bob, chat, { "first.png": png(50, 50), "second.png": png(50, 50) });
  await say(ada, chat, "Words between");
  await sendFiles(ada, chat, { "notes.txt": "text", "third.png": png(50, 50) });
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await page.getByRole("button", { name: "second.png" }).click();
  await page.getByRole("dialog", { name: "second.png, 2 of 3" }).waitFor();
  await lightbox(page).getByRole("button", { name: "Next picture" }).click();
  await page.getByRole("dialog", { name: "third.png, 3 of 3" }).waitFor();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  await page.getByRole("dialog", { name: "first.png, 1 of 3" }).waitFor();
  await sendFiles(bob, chat, { "fourth.png": png(50, 50) });
  await page.getByRole("dialog", { name: "first.png, 1 of 4" }).waitFor();
  await goBack(page);
  await lightbox(page).waitFor({ state: "detached" });
  expect(new URL(page.url()).pathname).toBe(path);
  expect(visit.problems()).toEqual([]);
});

test("arrows skip the pictures of people whom one blocked", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await sendFiles(ada, chat, { "mine.png": png(50, 50) });
  await sendFiles(bob, chat, { "theirs.png": png(50, 50) });
  await sendFiles(ada, chat, { "mine-too.png": png(50, 50) });
  await ada.call("blockUser", { username: bob.username });
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await page.getByRole("button", { name: "mine.png" }).click();
  await page.getByRole("dialog", { name: "mine.png, 1 of 2" }).waitFor();
  await page.keyboard.press("ArrowRight");
  await page.getByRole("dialog", { name: "mine-too.png, 2 of 2" }).waitFor();
  expect(visit.problems()).toEqual([]);
});

test("a long picture is shown in its own width, and scrolled", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await sendFiles(bob, chat, { "page.png": png(400, 4000) });
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await page.getByRole("button", { name: "page.png" }).click();
  const picture = lightbox(page).getByRole("img", { name: "page.png" });
  const box = lightbox(page).locator("header + div");
  const place = async () => {
    const { x = 0, y = 0, width = 0, height = 0 } = (await picture.boundingBox()) ?? {};
    const around = await box.boundingBox();
    const [above, below] = [y - (around?.y ?? 0), y + height - (around?.y ?? 0)];
    return { x, width, above, belowEnd: below - (around?.height ?? 0) };
  };
  await picture.waitFor();
  // It is fitted into its box with the first frame.
  await nextFrame(page);
  const first = await place();
  expect(first.width).toBeCloseTo(400, 0);
  expect(first.x).toBeCloseTo(440, 0);
  expect(first.above).toBeCloseTo(0, 0);
  expect(first.belowEnd).toBeGreaterThan(3000);

  await picture.hover({ position: { x: 200, y: 100 } });
  await page.mouse.wheel(0, 500);
  await page.waitForFunction(
    (top) => (document.querySelector("dialog img[alt]")?.getBoundingClientRect().top ?? 0) < top,
    first.above,
  );
  expect((await place()).above).toBeCloseTo(first.above - 500, 0);
  for (let times = 0; times < 8; times++) await page.keyboard.press("PageDown");
  const last = await place();
  expect(last.belowEnd).toBeCloseTo(0, 0);
  await page.keyboard.press("ArrowUp");
  expect((await place()).above).toBeGreaterThan(last.above);
  await page.keyboard.press("0");
  expect((await place()).above).toBeCloseTo(0, 0);
  for (let times = 0; times < 8; times++) await page.keyboard.press("-");
  expect((await place()).belowEnd).toBeCloseTo(0, 0);
  expect(visit.problems()).toEqual([]);
});

test("arrows on a phone stand below the picture", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await sendFiles(bob, chat, { "tall.png": png(400, 900) });
  await sendFiles(bob, chat, { "other.png": png(400, 900) });
  await using visit = await harness().visit(ada, { path, ...PHONE });
  const { page } = visit;
  await page.getByRole("button", { name: "tall.png" }).tap();
  const picture = lightbox(page).getByRole("img", { name: "tall.png" });
  await picture.waitFor();
  const { y = 0, height = 0 } = (await picture.boundingBox()) ?? {};
  for (const name of ["Previous picture", "Next picture"]) {
    const arrow = await lightbox(page).getByRole("button", { name }).boundingBox();
    expect(arrow?.y).toBeGreaterThanOrEqual(y + height);
    expect((arrow?.y ?? 0) + (arrow?.height ?? 0)).toBeLessThanOrEqual(740);
    expect(Math.min(arrow?.width ?? 0, arrow?.height ?? 0)).toBeGreaterThanOrEqual(44);
  }
  await lightbox(page).getByRole("button", { name: "Next picture" }).tap();
  await lightbox(page).getByText("2 of 2").waitFor();
  await expectNoViolations(page);
  expect(visit.problems()).toEqual([]);
});

test("a swipe on a phone shows the next picture", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await sendFiles(bob, chat, { "left.png": png(50, 50) });
  await sendFiles(bob, chat, { "right.png": png(50, 50) });
  await using visit = await harness().visit(ada, { path, ...PHONE });
  const { page } = visit;
  await page.getByRole("button", { name: "left.png" }).tap();
  await lightbox(page).getByText("1 of 2").waitFor();
  const session = await page.context().newCDPSession(page);
  const touch = (type: "touchStart" | "touchMove" | "touchEnd", ...touchPoints: Point[]) =>
    session.send("Input.dispatchTouchEvent", { type, touchPoints });
  const swipe = async (...places: number[]) => {
    const [start = 0, ...rest] = places;
    await touch("touchStart", { x: start, y: 400 });
    for (const x of rest) await touch("touchMove", { x, y: 400 });
    await touch("touchEnd");
  };
  await swipe(250, 180, 120);
  await lightbox(page).getByText("2 of 2").waitFor();
  await swipe(120, 180, 250);
  await lightbox(page).getByText("1 of 2").waitFor();
  await swipe(250, 180, 120);
  await lightbox(page).getByText("2 of 2").waitFor();

  const picture = lightbox(page).getByRole("img", { name: "right.png" });
  await picture.waitFor();
  await touch("touchStart", { x: 150, y: 400 }, { x: 210, y: 400 });
  await touch("touchMove", { x: 120, y: 400 }, { x: 240, y: 400 });
  await touch("touchEnd");
  expect((await picture.boundingBox())?.width).toBeCloseTo(192, 0);
  expect(visit.problems()).toEqual([]);
});

interface Point {
  x: number;
  y: number;
}
