/// <reference lib="dom" />
import { expect } from "bun:test";
import type { JSHandle, Page } from "playwright-core";
import { expectNoViolations } from "./axe.ts";
import {
  dataTransfer,
  filesStored,
  loaded,
  picker,
  pngFile,
  sentFiles,
  strip,
  textFile,
} from "./files.ts";
import { png } from "./pictures.ts";
import { startProxy } from "./proxy.ts";
import {
  composer,
  groupChat,
  hasFocus,
  message,
  PHONE,
  say,
  sharedHarness,
  test,
  untilFocused,
} from "./support.ts";

const harness = sharedHarness();

test("several files are picked, one is removed, and the others are sent with words", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await composer(page).waitFor();
  await picker(page).setInputFiles([pngFile("one.png"), textFile("two.txt"), pngFile("three.png")]);
  await strip(page).getByText("two.txt").waitFor();
  expect(await hasFocus(composer(page))).toBe(true);
  expect(await strip(page).getByRole("listitem").count()).toBe(3);
  await strip(page).getByRole("button", { name: "Remove two.txt" }).click();
  await composer(page).fill("Two pictures");
  await composer(page).press("Enter");
  await message(page, "Two pictures").getByText("Sent").waitFor();
  expect(await strip(page).count()).toBe(0);
  await loaded(page, "three.png");
  expect(await sentFiles(bob, chat)).toEqual([["Two pictures", "one.png", "three.png"]]);
  expect(visit.problems()).toEqual([]);
});

test("a file that only claims to be a picture has the mark of a file, and a long name keeps its end", async () => {
  const { ada, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await composer(page).waitFor();
  const name = `${"A very long name, ".repeat(8)}version 23.png`;
  await picker(page).setInputFiles([{ ...textFile(name), mimeType: "image/png" }]);
  await strip(page).getByText("PNG", { exact: true }).waitFor();
  expect(await strip(page).locator("img").count()).toBe(0);
  const end = strip(page)
    .getByText(/23\.png$/)
    .last();
  const [shown, item] = await Promise.all([
    end.boundingBox(),
    strip(page).getByRole("listitem").boundingBox(),
  ]);
  const right = (box: typeof shown) => (box ? box.x + box.width : 0);
  expect(shown?.width).toBeLessThan(100);
  expect(right(shown)).toBeLessThan(right(item));
  expect(visit.problems()).toEqual([]);
});

test("files are attached, removed and sent without words by keyboard alone", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  const choosing = page.waitForEvent("filechooser");
  await composer(page).focus();
  await page.keyboard.press("Shift+Tab");
  expect(await hasFocus(page.getByRole("button", { name: "Attach files" }))).toBe(true);
  await page.keyboard.press("Enter");
  await (await choosing).setFiles([textFile("a.txt"), textFile("b.txt")]);
  await strip(page).waitFor();
  await page.getByRole("status").getByText("2 files attached").waitFor();
  await untilFocused(composer(page));
  await page.keyboard.press("Shift+Tab");
  await page.keyboard.press("Shift+Tab");
  expect(await hasFocus(page.getByRole("button", { name: "Remove b.txt" }))).toBe(true);
  await page.keyboard.press("Enter");
  expect(await hasFocus(page.getByRole("button", { name: "Remove a.txt" }))).toBe(true);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  expect(await hasFocus(composer(page))).toBe(true);
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: /^Download a.txt/ }).waitFor();
  expect(await sentFiles(bob, chat)).toEqual([["", "a.txt"]]);
  expect(visit.problems()).toEqual([]);
});

test("pasted screenshots are shown, and sent together", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await composer(page).focus();
  const data = await dataTransfer(page, [{ name: "image.png", bytes: [...png(800, 600)] }]);
  const paste = (count: number) =>
    page.evaluate(
      async ([clipboardData, before]) => {
        const isShown = () =>
          [...document.querySelectorAll("img")].filter(
            ({ src, complete }) => src.startsWith("blob:") && complete,
          ).length > before;
        const event = new ClipboardEvent("paste", {
          clipboardData,
          bubbles: true,
          cancelable: true,
        });
        document.activeElement?.dispatchEvent(event);
        while (!isShown()) await new Promise(requestAnimationFrame);
      },
      [data, count] as const,
    );
  const pasted = [0, 1, 2, 3, 4];
  for (const count of pasted) await paste(count);
  expect(await strip(page).getByRole("listitem").count()).toBe(5);
  await page.getByRole("button", { name: "Send" }).click();
  await loaded(page, "image.png");
  await page.getByText("Sent").waitFor();
  expect(await sentFiles(bob, chat)).toEqual([["", ...pasted.map(() => "image.png")]]);
  expect(visit.problems()).toEqual([]);
});

test("files are dropped anywhere onto the conversation, which shows the target", async () => {
  const { ada, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await composer(page).waitFor();
  const dropped: JSHandle = await dataTransfer(page, [
    { name: "a.png", bytes: [...png(30, 30)] },
    { name: "b.txt", bytes: [104, 105] },
  ]);
  const target = page.getByText("Drop files to attach them");
  const area = page.getByRole("heading", { name: "Messages" });
  await area.dispatchEvent("dragenter", { dataTransfer: dropped });
  await target.waitFor();
  await page.locator("main").dispatchEvent("dragleave", { dataTransfer: dropped });
  await target.waitFor({ state: "detached" });
  await area.dispatchEvent("dragenter", { dataTransfer: dropped });
  await area.dispatchEvent("dragover", { dataTransfer: dropped });
  await area.dispatchEvent("drop", { dataTransfer: dropped });
  await target.waitFor({ state: "detached" });
  expect(await strip(page).getByRole("listitem").count()).toBe(2);
  expect(visit.problems()).toEqual([]);
});

test("attached files stay while another conversation is open, and are gone after signing out", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await ada.call("setChatTitle", { chat_id: chat.id, title: "First" });
  const other = await ada.call("startChat", { usernames: [bob.username], title: "Second" });
  await say(bob, other, "Over here");
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await composer(page).waitFor();
  await picker(page).setInputFiles([pngFile("kept.png")]);
  await strip(page).getByText("kept.png").waitFor();
  await page.getByRole("link", { name: /Second/ }).click();
  await message(page, "Over here").waitFor();
  expect(await strip(page).count()).toBe(0);
  await page.getByRole("link", { name: /First/ }).click();
  await strip(page).getByText("kept.png").waitFor();

  // As after a sign-in with the form, so that the form is shown again.
  await page.evaluate(() => localStorage.setItem("parley.visited", "1"));
  await page.getByRole("button", { name: "Menu", exact: true }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await page.getByRole("heading", { name: "Welcome back" }).waitFor();
  await page.getByLabel("Username").fill(ada.username);
  await page.getByLabel("Password").fill("correct horse battery");
  await page.getByLabel("Password").press("Enter");
  await page.getByRole("link", { name: /First/ }).click();
  await composer(page).waitFor();
  expect(await strip(page).count()).toBe(0);
  expect(visit.problems()).toEqual([]);
});

test("files over the limits are refused with a reason before they are sent", async () => {
  const { ada, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await composer(page).waitFor();
  await picker(page).evaluate((input: HTMLInputElement) => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(26_214_401)], "large.bin"));
    data.items.add(new File(["hello"], "small.txt"));
    input.files = data.files;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  });
  await page.getByRole("alert").getByText("large.bin is larger than 25 MB.").waitFor();
  expect(await strip(page).getByRole("listitem").count()).toBe(1);
  const many = Array.from({ length: 10 }, (_, index) => textFile(`${index}.txt`));
  await picker(page).setInputFiles(many);
  await page.getByRole("alert").getByText("A message takes at most 10 files.").waitFor();
  await page.getByText("10 of 10 files", { exact: true }).waitFor();
  expect(await strip(page).getByRole("listitem").count()).toBe(10);
  expect(visit.problems()).toEqual([]);
});

test("the number of attached files is shown near the limit", async () => {
  const { ada, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await composer(page).waitFor();
  const some = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, index) => textFile(`${from + index}.txt`));
  await picker(page).setInputFiles(some(0, 7));
  await page.getByRole("status").getByText("7 files attached").waitFor();
  expect(await page.getByText("of 10 files", { exact: false }).count()).toBe(0);
  await picker(page).setInputFiles(some(7, 8));
  await page.getByText("8 of 10 files", { exact: true }).waitFor();
  await page.getByRole("status").getByText("8 of 10 files attached").waitFor();
  await strip(page).getByRole("button", { name: "Remove 3.txt" }).click();
  await page.getByText("8 of 10 files", { exact: true }).waitFor({ state: "detached" });
  expect(visit.problems()).toEqual([]);
});

test("pictures that the server cannot process are refused at once, however they arrive", async () => {
  const { ada, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await composer(page).waitFor();
  const alert = page.getByRole("alert");
  const file = (name: string, mimeType: string) => ({ ...textFile(name), mimeType });
  await picker(page).setInputFiles([file("IMG_1.HEIC", ""), pngFile("fine.png")]);
  await alert.getByText("IMG_1.HEIC cannot be sent: save it as JPEG or PNG.").waitFor();
  expect(await strip(page).getByRole("listitem").count()).toBe(1);
  await expectNoViolations(page);
  await picker(page).setInputFiles([
    file("a.avif", "image/avif"),
    file("b.tif", "image/tiff"),
    file("c.psd", "image/vnd.adobe.photoshop"),
  ]);
  await alert.getByText("a.avif and 2 others cannot be sent: save them as JPEG or PNG.").waitFor();

  const data = await dataTransfer(page, [{ name: "pasted.heif", bytes: [1, 2, 3] }]);
  await composer(page).focus();
  await page.evaluate((clipboardData) => {
    const options = { clipboardData, bubbles: true, cancelable: true };
    document.activeElement?.dispatchEvent(new ClipboardEvent("paste", options));
  }, data);
  await alert.getByText("pasted.heif cannot be sent").waitFor();
  const area = page.getByRole("heading", { name: "Messages" });
  const dropped = await dataTransfer(page, [{ name: "dropped.tiff", bytes: [1, 2, 3] }]);
  await area.dispatchEvent("drop", { dataTransfer: dropped });
  await alert.getByText("dropped.tiff cannot be sent").waitFor();
  expect(await strip(page).getByRole("listitem").count()).toBe(1);

  await strip(page).getByRole("button", { name: "Remove fine.png" }).click();
  await picker(page).setInputFiles([file("drawing.svg", "image/svg+xml")]);
  await strip(page).getByText("drawing.svg").waitFor();
  expect(await alert.getByText("cannot be sent").count()).toBe(0);
  expect(visit.problems()).toEqual([]);
});

test("files attached offline are sent when the connection is back, also after a reload", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  using proxy = startProxy(harness().url);
  const options = { path, url: proxy.url, networkFails: true, serviceWorkers: "allow" as const };
  await using visit = await harness().visit(ada, options);
  const { page } = visit;
  await composer(page).waitFor();
  await page.evaluate(() => navigator.serviceWorker.ready.then(() => true));
  proxy.disconnect();
  await page.getByText("The server cannot be reached").waitFor();
  await picker(page).setInputFiles([pngFile("tunnel.png", 80, 50)]);
  await composer(page).fill("In the tunnel");
  await composer(page).press("Enter");
  await message(page, "In the tunnel").getByText("Sending").waitFor();
  await loaded(page, "tunnel.png");
  await filesStored(page, 1);
  await page.reload();
  await message(page, "In the tunnel").getByText("Sending").waitFor();
  await loaded(page, "tunnel.png");
  proxy.reconnect();
  await message(page, "In the tunnel").getByText("Sent").waitFor();
  expect(await sentFiles(bob, chat)).toEqual([["In the tunnel", "tunnel.png"]]);
  await loaded(page, "tunnel.png");
  expect(visit.problems()).toEqual([]);
});

test("an upload shows its progress and can be cancelled", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path, networkFails: true });
  const { page } = visit;
  await composer(page).waitFor();
  // The server never gets the bytes.
  await page.route("**/files/*/upload?*", () => {});
  await picker(page).setInputFiles([pngFile("slow.png"), textFile("slow.txt")]);
  await composer(page).press("Enter");
  const sending = page.getByRole("article");
  await sending.getByRole("progressbar", { name: "Uploading slow.png" }).waitFor();
  await sending.getByRole("progressbar", { name: "Uploading slow.txt" }).waitFor();
  await expectNoViolations(page.getByRole("feed"));
  await sending.getByRole("button", { name: "Cancel" }).click();
  await sending.waitFor({ state: "detached" });
  await page.unroute("**/files/*/upload?*");
  await composer(page).fill("Never mind");
  await composer(page).press("Enter");
  await message(page, "Never mind").getByText("Sent").waitFor();
  expect(await sentFiles(bob, chat)).toEqual([["Never mind"]]);
  expect(visit.problems()).toEqual([]);
});

/** Refuses uploads as the server would, as long as there are refusals left. */
async function refuseUploads(page: Page, refusal: { code: string; description: string }) {
  const state = { refusals: Number.POSITIVE_INFINITY };
  await page.route("**/files/*/upload?*", (route) =>
    state.refusals-- > 0 ? route.fulfill({ json: { ok: false, ...refusal } }) : route.continue(),
  );
  return state;
}

test("a file that is refused for good can only be left out or discarded", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await composer(page).waitFor();
  const description = "pictures of this kind are not supported";
  const uploads = await refuseUploads(page, { code: "unsupported_media_type", description });
  const failed = page.getByRole("article");
  const buttons = () =>
    failed
      .getByText(/^Not sent: /)
      .locator("xpath=ancestor::div[1]")
      .getByRole("button")
      .allInnerTexts();
  await picker(page).setInputFiles([pngFile("odd.png")]);
  await composer(page).press("Enter");
  await failed.getByText(`Not sent: odd.png: ${description}.`).waitFor();
  expect(await buttons()).toEqual(["Discard"]);
  await filesStored(page, 1);
  await page.reload();
  await failed.getByText(`Not sent: odd.png: ${description}.`).waitFor();
  expect(await buttons()).toEqual(["Discard"]);
  await failed.getByRole("button", { name: "Discard" }).click();
  await failed.waitFor({ state: "detached" });

  uploads.refusals = 1;
  await picker(page).setInputFiles([pngFile("odd.png"), pngFile("fine.png")]);
  await composer(page).fill("Look at these");
  await composer(page).press("Enter");
  await failed.getByText("Not sent: ").waitFor();
  expect(await buttons()).toEqual(["Edit", "Copy", "Discard"]);
  await failed.getByRole("button", { name: "Edit" }).click();
  await strip(page).waitFor();
  expect(await strip(page).getByRole("listitem").count()).toBe(1);
  expect(await composer(page).inputValue()).toBe("Look at these");
  await composer(page).press("Enter");
  await message(page, "Look at these").getByText("· Sent").waitFor();
  const [[words, ...names] = []] = await sentFiles(bob, chat);
  expect(words).toBe("Look at these");
  expect(names).toHaveLength(1);
  expect(visit.problems()).toEqual([]);
});

test("a refused file can be sent again, or returned to the composer", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await composer(page).waitFor();
  const description = "this conversation takes no files now";
  const uploads = await refuseUploads(page, { code: "forbidden", description });
  uploads.refusals = 2;
  await picker(page).setInputFiles([pngFile("odd.png")]);
  await composer(page).fill("Look at this");
  await composer(page).press("Enter");
  const failed = message(page, "Look at this");
  const reason = failed.getByText(`Not sent: odd.png: ${description}.`);
  await reason.waitFor();
  await failed.getByRole("button", { name: "Edit" }).click();
  await strip(page).getByText("odd.png").waitFor();
  expect(await composer(page).inputValue()).toBe("Look at this");
  await composer(page).press("Enter");
  await reason.waitFor();
  await failed.getByRole("button", { name: "Try again" }).click();
  await failed.getByText("· Sent").waitFor();
  expect(await sentFiles(bob, chat)).toEqual([["Look at this", "odd.png"]]);
  expect(visit.problems()).toEqual([]);
});

test("one's own picture does not move or flicker from sending to sent", async () => {
  const { ada, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await composer(page).waitFor();
  await picker(page).setInputFiles([pngFile("steady.png", 200, 300)]);
  await page.waitForFunction(
    () => document.querySelector<HTMLImageElement>("form li img")?.naturalWidth === 200,
  );
  await composer(page).press("Enter");
  const picture = page.getByRole("img", { name: "steady.png" });
  await picture.waitFor();
  const box = await picture.boundingBox();
  const source = await picture.getAttribute("src");
  await page.getByRole("article").getByText("Sent").waitFor();
  expect(box).toMatchObject({ width: 200, height: 300 });
  const { width, height } = (await picture.boundingBox()) ?? {};
  expect({ width, height }).toEqual({ width: 200, height: 300 });
  expect(await picture.getAttribute("src")).toBe(source);
  expect(visit.problems()).toEqual([]);
});

test("files are attached and sent on a phone, and a message of pictures has its actions", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path, ...PHONE });
  const { page } = visit;
  await composer(page).waitFor();
  await picker(page).setInputFiles([pngFile("a.png"), pngFile("b.png"), textFile("c.txt")]);
  await strip(page).waitFor();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
  for (const button of await page.locator("form").getByRole("button").all()) {
    const { width = 0, height = 0 } = (await button.boundingBox()) ?? {};
    if (width > 0) expect(Math.min(width, height)).toBeGreaterThanOrEqual(40);
  }
  await expectNoViolations(page);
  await page.getByRole("button", { name: "Send" }).tap();
  await page.getByText("· Sent").waitFor();
  expect(await sentFiles(bob, chat)).toEqual([["", "a.png", "b.png", "c.txt"]]);
  const session = await page.context().newCDPSession(page);
  const { x = 0, y = 0 } = (await page.getByRole("button", { name: "a.png" }).boundingBox()) ?? {};
  const at = { x: x + 20, y: y + 20 };
  await session.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [at] });
  await page.getByRole("dialog", { name: "Message actions" }).waitFor();
  await session.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
  expect(visit.problems()).toEqual([]);
});
