/// <reference lib="dom" />
import { expect } from "bun:test";
import { lightbox, loaded, sendFiles } from "./files.ts";
import { png } from "./pictures.ts";
import { groupChat, hasFocus, PHONE, sharedHarness, test } from "./support.ts";

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

test("a swipe on a phone shows the next picture", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await sendFiles(bob, chat, { "left.png": png(50, 50), "right.png": png(50, 50) });
  await using visit = await harness().visit(ada, { path, ...PHONE });
  const { page } = visit;
  await page.getByRole("button", { name: "left.png" }).tap();
  await lightbox(page).getByText("1 of 2").waitFor();
  const session = await page.context().newCDPSession(page);
  const touch = (type: "touchStart" | "touchMove" | "touchEnd", ...touchPoints: Point[]) =>
    session.send("Input.dispatchTouchEvent", { type, touchPoints });
  await touch("touchStart", { x: 250, y: 400 });
  await touch("touchMove", { x: 180, y: 400 });
  await touch("touchMove", { x: 120, y: 400 });
  await touch("touchEnd");
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
