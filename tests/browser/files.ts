/// <reference lib="dom" />
import type { Person } from "@parley/testkit/client.ts";
import { upload } from "@parley/testkit/files.ts";
import { until } from "@parley/testkit/until.ts";
import type { Locator, Page } from "playwright-core";
import { png } from "./pictures.ts";

/** Sends a message with the given files. */
export async function sendFiles(
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

export const lightbox = (page: Page) => page.getByRole("dialog");

/** Waits until a picture is complete. */
export const loaded = (page: Page, name: string) =>
  page.waitForFunction((alt) => {
    const found = document.querySelector<HTMLImageElement>(`img[alt="${alt}"]`);
    return found?.complete && found.naturalWidth > 0;
  }, name);

export const strip = (page: Page): Locator => page.getByRole("list", { name: "Attached files" });
export const picker = (page: Page): Locator => page.locator("form input[type=file]");
export const pngFile = (name: string, width = 60, height = 40) => ({
  name,
  mimeType: "image/png",
  buffer: Buffer.from(png(width, height)),
});
export const textFile = (name: string) => ({
  name,
  mimeType: "text/plain",
  buffer: Buffer.from("hello"),
});

/** The names of the files of the messages of a conversation, latest first. */
export async function sentFiles(person: Person, chat: { id: string }) {
  const { items } = await person.call("getChatHistory", { chat_id: chat.id });
  return items.map(({ content, files }) => [content, ...files.map(({ name }) => name)]);
}

/** What a paste or a drop of files carries. */
export const dataTransfer = (page: Page, files: { name: string; bytes: number[] }[]) =>
  page.evaluateHandle((given) => {
    const data = new DataTransfer();
    for (const { name, bytes } of given) {
      const type = name.endsWith(".png") ? "image/png" : "text/plain";
      data.items.add(new File([new Uint8Array(bytes)], name, { type }));
    }
    return data;
  }, files);

/** Waits until this many files of unsent messages are stored in the browser. */
export async function filesStored(page: Page, count: number): Promise<void> {
  const stored = () =>
    page.evaluate(async () => {
      // Opening a database that does not exist would create it.
      const databases = await indexedDB.databases();
      if (!databases.some(({ name }) => name === "parley-files")) return 0;
      const opening = indexedDB.open("parley-files");
      await new Promise((resolve) => opening.addEventListener("success", resolve));
      const counting = opening.result.transaction("blobs").objectStore("blobs").count();
      await new Promise((resolve) => counting.addEventListener("success", resolve));
      opening.result.close();
      return counting.result;
    });
  await until(async () => (await stored()) >= count, "files are stored");
}
