/// <reference lib="dom" />
import { expect } from "bun:test";
import { pngOf, uploadPicture } from "@parley/testkit/files.ts";
import { until } from "@parley/testkit/until.ts";
import type { Locator, Page } from "playwright-core";
import { expectNoViolations } from "./axe.ts";
import { groupChat, hasFocus, message, PHONE, say, sharedHarness, test } from "./support.ts";

const harness = sharedHarness();

/** The pictures that have loaded inside. */
async function loadedIn(place: Locator): Promise<number> {
  return place
    .locator("img")
    .evaluateAll((all) => all.filter((each) => (each as HTMLImageElement).naturalWidth > 0).length);
}

/** Waits until a picture is shown there in place of initials. */
async function waitForPicture(place: Locator): Promise<void> {
  const picture = place.locator("img:not(.opacity-0)").first();
  await picture.waitFor();
  await picture.evaluate((image: HTMLImageElement) => image.decode());
}

/** Chooses a file with the button, as a person does. */
async function choose(page: Page, name: string, buffer: Uint8Array, by: "click" | "keyboard") {
  const button = page.getByRole("button", { name });
  const chooser = page.waitForEvent("filechooser");
  if (by === "click") await button.click();
  else {
    await button.focus();
    await page.keyboard.press("Enter");
  }
  const file = { name: "me.png", mimeType: "image/png", buffer: Buffer.from(buffer) };
  await (await chooser).setFiles(file);
}

const status = (page: Page, text: string) => page.getByRole("status").getByText(text).waitFor();

test("a person chooses a picture with the keyboard, others see it at once, and it can be removed", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await say(ada, chat, "hello");
  await using other = await harness().visit(bob, { path });
  await using visit = await harness().visit(ada, { path: "/settings" });
  const { page } = visit;
  const field = page.getByRole("group", { name: "Your picture" });
  await choose(page, "Choose picture", await pngOf(800, 400), "keyboard");
  await status(page, "Picture saved");
  await waitForPicture(field);
  const { items } = await bob.call("getProfiles", { usernames: [ada.username] });
  const stored = await fetch(items[0]?.picture_url ?? "");
  expect(await new Bun.Image(await stored.arrayBuffer()).metadata()).toMatchObject({
    width: 400,
    height: 400,
  });
  const row = message(other.page, "hello");
  await waitForPicture(row);
  await waitForPicture(other.page.getByRole("navigation").first().or(other.page.locator("aside")));

  await page.getByRole("button", { name: "Remove picture" }).press("Enter");
  await status(page, "Picture removed");
  expect(await hasFocus(page.getByRole("button", { name: "Choose picture" }))).toBe(true);
  await row.locator("img").waitFor({ state: "detached" });
  expect([visit.problems(), other.problems()]).toEqual([[], []]);
});

test("a file that is no picture is refused with a sentence", async () => {
  const ada = await harness().person("ada");
  await using visit = await harness().visit(ada, { path: "/settings", networkFails: true });
  const { page } = visit;
  await choose(page, "Choose picture", Buffer.from("hello"), "click");
  await page.getByRole("alert").getByText("JPEG, PNG, WebP or GIF").waitFor();
  expect(await loadedIn(page.getByRole("group", { name: "Your picture" }))).toBe(0);
});

test("a picture of a kind that neither the browser nor the server can read is refused before it is uploaded", async () => {
  const ada = await harness().person("ada");
  await using visit = await harness().visit(ada, { path: "/settings" });
  const { page } = visit;
  const uploads: string[] = [];
  page.on("request", (request) => {
    if (request.url().includes("Upload") || request.method() === "PUT") uploads.push(request.url());
  });
  const chooser = page.waitForEvent("filechooser");
  await page.getByRole("button", { name: "Choose picture" }).click();
  // Chromium gives HEIC no type.
  const file = { name: "IMG_1.HEIC", mimeType: "", buffer: Buffer.from("hello") };
  await (await chooser).setFiles(file);
  const refusal = "This picture cannot be used: save it as JPEG or PNG.";
  await page.getByRole("alert").getByText(refusal).waitFor();
  expect(uploads).toEqual([]);
  expect(await loadedIn(page.getByRole("group", { name: "Your picture" }))).toBe(0);
  expect(visit.problems()).toEqual([]);
});

test("a group's picture is chosen in its details, on a phone too", async () => {
  const { ada, bob, path } = await groupChat(harness());
  await using other = await harness().visit(bob, { path });
  await using visit = await harness().visit(ada, { path, ...PHONE });
  const { page } = visit;
  await page.getByRole("button", { name: "Members and agents" }).click();
  const field = page.getByRole("group", { name: "The group's picture" });
  await choose(page, "Choose picture", await pngOf(64), "click");
  await status(page, "Picture saved");
  await waitForPicture(field);
  await expectNoViolations(page);
  await waitForPicture(other.page.getByRole("banner").or(other.page.locator("header")).first());
  await other.page.getByText("changed the group's picture").waitFor();
  await page.getByRole("button", { name: "Remove picture" }).click();
  await status(page, "Picture removed");
  await until(async () => (await loadedIn(field)) === 0, "no picture");
  expect([visit.problems(), other.problems()]).toEqual([[], []]);
});

test("nothing moves when a picture loads, and a picture that does not load shows initials", async () => {
  const { ada, bob, chat, path } = await groupChat(harness());
  await ada.call("setAvatar", { file_id: (await uploadPicture(ada)).id });
  await say(ada, chat, "hello");
  await using visit = await harness().visit(null, { networkFails: true });
  const { page } = visit;
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  await page.route("**/files/**/preview?**", async (route) => {
    await released;
    await route.continue();
  });
  await page.evaluate((token) => localStorage.setItem("parley.token", token), bob.token);
  await page.goto(harness().url + path);
  const row = message(page, "hello");
  const avatar = row
    .locator("[aria-hidden=true]")
    .filter({ has: page.locator("img") })
    .first();
  await avatar.locator("img").waitFor({ state: "attached" });
  expect((await avatar.textContent())?.length).toBeGreaterThan(0);
  const before = [await avatar.boundingBox(), await row.boundingBox()];
  release();
  await waitForPicture(row);
  expect([await avatar.boundingBox(), await row.boundingBox()]).toEqual(before);
  expect(await avatar.textContent()).toBe("");

  await page.unrouteAll();
  await page.route("**/files/**/preview?**", (route) => route.abort());
  await ada.call("setAvatar", { file_id: (await uploadPicture(ada)).id });
  await row.locator("img").waitFor({ state: "detached" });
  expect((await avatarText(row))?.length).toBeGreaterThan(0);
});

const avatarText = (row: Locator) => row.locator("[aria-hidden=true]").first().textContent();

test("the settings with a picture are accessible in both themes", async () => {
  const ada = await harness().person("ada");
  await ada.call("setAvatar", { file_id: (await uploadPicture(ada)).id });
  await using visit = await harness().visit(ada, { path: "/settings" });
  const { page } = visit;
  const field = page.getByRole("group", { name: "Your picture" });
  await waitForPicture(field);
  await expectNoViolations(field);
  expect(visit.problems()).toEqual([]);
});
