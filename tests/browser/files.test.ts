/// <reference lib="dom" />
import { expect } from "bun:test";
import type { Person } from "@parley/testkit/client.ts";
import { upload } from "@parley/testkit/files.ts";
import type { JSHandle, Locator, Page } from "playwright-core";
import { expectNoViolations } from "./axe.ts";
import { png, wav } from "./pictures.ts";
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
} from "./support.ts";

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
  await page.waitForFunction(() => (document.querySelector("video")?.error ?? null) !== null);
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

const strip = (page: Page): Locator => page.getByRole("list", { name: "Attached files" });
const picker = (page: Page): Locator => page.locator("form input[type=file]");
const pngFile = (name: string, width = 60, height = 40) => ({
  name,
  mimeType: "image/png",
  buffer: Buffer.from(png(width, height)),
});
const textFile = (name: string) => ({
  name,
  mimeType: "text/plain",
  buffer: Buffer.from("hello"),
});

/** The names of the files of the messages of a conversation, latest first. */
async function sentFiles(person: Person, chat: { id: string }) {
  const { items } = await person.call("getChatHistory", { chat_id: chat.id });
  return items.map(({ content, files }) => [content, ...files.map(({ name }) => name)]);
}

/** What a paste or a drop of files carries. */
const dataTransfer = (page: Page, files: { name: string; bytes: number[] }[]) =>
  page.evaluateHandle((given) => {
    const data = new DataTransfer();
    for (const { name, bytes } of given) {
      const type = name.endsWith(".png") ? "image/png" : "text/plain";
      data.items.add(new File([new Uint8Array(bytes)], name, { type }));
    }
    return data;
  }, files);

test("several files are picked, one is removed, and the others are sent with words", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await composer(page).waitFor();
  await picker(page).setInputFiles([pngFile("one.png"), textFile("two.txt"), pngFile("three.png")]);
  await strip(page).getByText("two.txt").waitFor();
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
  expect(await strip(page).getByRole("listitem").count()).toBe(10);
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
  await expectNoViolations(page);
  await sending.getByRole("button", { name: "Cancel" }).click();
  await sending.waitFor({ state: "detached" });
  await page.unroute("**/files/*/upload?*");
  await composer(page).fill("Never mind");
  await composer(page).press("Enter");
  await message(page, "Never mind").getByText("Sent").waitFor();
  expect(await sentFiles(bob, chat)).toEqual([["Never mind"]]);
  expect(visit.problems()).toEqual([]);
});

test("a refused file can be sent again, or returned to the composer", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await using visit = await harness().visit(ada, { path });
  const { page } = visit;
  await composer(page).waitFor();
  let refusals = 2;
  await page.route("**/files/*/upload?*", async (route) => {
    if (refusals-- <= 0) return route.continue();
    const description = "files of this kind are refused";
    await route.fulfill({ json: { ok: false, code: "unsupported_media_type", description } });
  });
  await picker(page).setInputFiles([pngFile("odd.png")]);
  await composer(page).fill("Look at this");
  await composer(page).press("Enter");
  const failed = message(page, "Look at this");
  const reason = failed.getByText("Not sent: odd.png: files of this kind are refused.");
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
