/// <reference lib="dom" />
import { expect } from "bun:test";
import type { Page } from "playwright-core";
import { expectNoViolations } from "./axe.ts";
import { lightbox, loaded, sendFiles } from "./files.ts";
import { png, wav } from "./pictures.ts";
import { groupChat, message, PHONE, say, sharedHarness, test } from "./support.ts";

const harness = sharedHarness();

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
  await page.waitForFunction(() => (document.querySelector("audio")?.duration ?? 0) === 1);
  await page.getByText("0:00 / 0:01").waitFor();
  await page.getByRole("button", { name: "Play sound.wav" }).click();
  await page.getByText("0:01 / 0:01").waitFor();
  await page.getByRole("button", { name: "Play sound.wav" }).waitFor();
  const position = page.getByRole("slider", { name: "Position in sound.wav" });
  await position.press("Home");
  await page.getByText("0:00 / 0:01").waitFor();
  expect(await position.getAttribute("aria-valuetext")).toBe("0:00 of 0:01");
  const downloading = page.waitForEvent("download");
  await page.getByRole("link", { name: /^Download page.html 8 bytes/ }).click();
  expect((await downloading).suggestedFilename()).toBe("page.html");

  await page.keyboard.press("Control+k");
  await page.keyboard.type("photo");
  await page.getByRole("option", { name: /photo/ }).getByText("photo.png").waitFor();
  expect(visit.problems()).toEqual([]);
});

test("a video has a box of fixed size before anything of it is loaded", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  // The beginning of an MP4 file, which cannot be played.
  const start = `\0\0\0\x18ftypisom\0\0\0\0isommp42`;
  await sendFiles(bob, chat, { "clip.mp4": new TextEncoder().encode(start) });
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  const player = page.locator("video");
  await player.waitFor();
  expect(await player.boundingBox()).toMatchObject({ width: 320, height: 180 });
  await page.getByText("This cannot be played here").waitFor();
  expect(await player.boundingBox()).toMatchObject({ width: 320, height: 180 });
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

test("files whose bytes the server has lost say so", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await sendFiles(bob, chat, { "photo.png": png(200, 120), "notes.txt": "hello" });
  await using visit = await harness().visit(ada, { path: "/" });
  const { page } = visit;
  const withoutBytes = (text: string) => text.replaceAll('"status":"ready"', '"status":"failed"');
  await page.routeWebSocket("**", (socket) => {
    const server = socket.connectToServer();
    server.onMessage((frame) => socket.send(withoutBytes(String(frame))));
  });
  await page.route("**/api/**", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: withoutBytes(await response.text()) });
  });
  await page.goto(harness().url + path);
  await page.getByRole("button", { name: "photo.png" }).getByText("No longer available").waitFor();
  const tile = page.getByRole("article").locator("div", { hasText: /^TXTnotes.txt No longer/ });
  await tile.first().waitFor();
  expect(await page.getByRole("link", { name: /notes.txt/ }).count()).toBe(0);
  await expectNoViolations(page.getByRole("feed"));
  expect(visit.problems()).toEqual([]);
});

test("white and black pictures have a visible edge in both themes", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await sendFiles(bob, chat, { "white.png": png(200, 120, [255, 255, 255]) });
  await sendFiles(bob, chat, { "black.png": png(200, 120, [17, 18, 20]) });
  for (const [colorScheme, name] of [
    ["light", "white.png"],
    ["dark", "black.png"],
  ] as const) {
    await using visit = await harness().visit(ada, { path, colorScheme });
    const { page } = visit;
    await loaded(page, name);
    const button = page.getByRole("button", { name });
    const [edge, inside] = await colorsAt(page, await button.screenshot(), [
      { x: 0, y: 60 },
      { x: 100, y: 60 },
    ]);
    expect(Math.abs((edge ?? 0) - (inside ?? 0))).toBeGreaterThan(15);
    expect(visit.problems()).toEqual([]);
  }
});

test("very long and very wide pictures are cropped, and say so", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await sendFiles(bob, chat, { "page.png": png(400, 4000) });
  await sendFiles(bob, chat, { "panorama.png": png(4000, 400), "b.png": png(40, 40) });
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await loaded(page, "page.png");
  const long = page.getByRole("button", { name: "page.png" });
  await long.getByText("Long picture").waitFor();
  expect(await long.boundingBox()).toMatchObject({ width: 180, height: 360 });
  await page.getByRole("button", { name: "panorama.png" }).getByText("Wide picture").waitFor();
  expect(await page.getByRole("button", { name: "b.png" }).innerText()).toBe("");
  expect(visit.problems()).toEqual([]);
});

/** The brightness of points of a screenshot, from 0 to 255. */
const colorsAt = (page: Page, screenshot: Buffer, points: { x: number; y: number }[]) =>
  page.evaluate(
    async ([base64, at]) => {
      const image = new Image();
      image.src = `data:image/png;base64,${base64}`;
      await image.decode();
      const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
      canvas?.drawImage(image, 0, 0);
      return at.map(({ x, y }) => {
        const [red = 0, green = 0, blue = 0] = canvas?.getImageData(x, y, 1, 1).data ?? [];
        return (red + green + blue) / 3;
      });
    },
    [screenshot.toString("base64"), points] as const,
  );

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
    await expectNoViolations(page.getByRole("feed"));
    await page.getByRole("button", { name: "a.png" }).click();
    await lightbox(page).waitFor();
    await expectNoViolations(page);
    const { width } = page.viewportSize() ?? { width: 0 };
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(width);
    expect(visit.problems()).toEqual([]);
  }
});

test("a PDF opens in the viewer of the browser, and is a download where there is none", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  const pdf = new TextEncoder().encode("%PDF-1.4\n1 0 obj<</Type/Pages/Count 0>>endobj\n%%EOF");
  await sendFiles(bob, chat, { "report.pdf": pdf });
  // A window of its own: the script stays in it.
  await using visit = await harness().visit(ada, { path, locale: "en-GB" });
  const { page } = visit;
  await page.getByRole("link", { name: /^Download report.pdf/ }).waitFor();
  await page.addInitScript(() =>
    Object.defineProperty(navigator, "pdfViewerEnabled", { value: true }),
  );
  await page.reload();
  await page.getByRole("button", { name: /^Open report.pdf/ }).click();
  const preview = page.getByRole("dialog", { name: "report.pdf" });
  await preview.locator("iframe[src^='blob:']").waitFor();
  const downloading = page.waitForEvent("download");
  await preview.getByRole("link", { name: "Download" }).click();
  expect((await downloading).suggestedFilename()).toBe("report.pdf");
  await expectNoViolations(page);
  await page.keyboard.press("Escape");
  await preview.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Members and agents" }).click();
  const listed = page.getByRole("region", { name: "Files" });
  await listed.getByRole("button", { name: /^Open report.pdf/ }).click();
  await preview.waitFor();
  expect(visit.problems()).toEqual([]);
});
