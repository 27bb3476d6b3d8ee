import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLinks, linkEnd } from "../src/files/links.ts";
import { receiveUpload } from "../src/files/receive-upload.ts";
import { createVault } from "../src/security/vault.ts";

const folder = mkdtempSync(join(tmpdir(), "parley-uploads-"));
afterAll(() => rmSync(folder, { recursive: true }));

const bytesOf = (text: string) => new Response(text).body;
const broken = () =>
  new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new TextEncoder().encode("half")),
    pull: (controller) => controller.error(new Error("the connection was lost")),
  });

describe("an upload", () => {
  test("is written to a file that goes away", async () => {
    const received = await receiveUpload(bytesOf("hello"), { folder, size: 5 });
    expect(await Bun.file(received.path).text()).toBe("hello");
    await received[Symbol.asyncDispose]();
    expect(readdirSync(folder)).toEqual([]);
  });

  test("may be empty", async () => {
    await using received = await receiveUpload(null, { folder, size: 0 });
    expect(Bun.file(received.path).size).toBe(0);
  });

  test("that is longer or shorter than declared, or breaks off, leaves nothing behind", async () => {
    const upload = (bytes: ReadableStream<Uint8Array> | null) =>
      receiveUpload(bytes, { folder, size: 5 });
    await expect(upload(bytesOf("hello!"))).rejects.toMatchObject({ code: "payload_too_large" });
    await expect(upload(bytesOf("hell"))).rejects.toMatchObject({ code: "bad_request" });
    await expect(upload(broken())).rejects.toThrow("the connection was lost");
    expect(readdirSync(folder)).toEqual([]);
  });

  test("is unavailable when the disk fails", async () => {
    const upload = receiveUpload(bytesOf("hello"), { folder: join(folder, "none"), size: 5 });
    await expect(upload).rejects.toMatchObject({ code: "unavailable" });
  });
});

describe("a link", () => {
  const links = createLinks(createVault([Buffer.alloc(32, 1)]));
  const NOW = 1_800_000_000_000;
  const queryOf = (path: string) => new URL(path, "http://localhost").searchParams;
  const query = queryOf(links.sign("content", "f1", NOW + 60_000));

  test("allows one use of one file until it ends", () => {
    expect(links.verify("content", "f1", query, NOW)).toBe(true);
    expect(links.verify("content", "f1", query, NOW + 60_000)).toBe(false);
    expect(links.verify("content", "f2", query, NOW)).toBe(false);
    expect(links.verify("upload", "f1", query, NOW)).toBe(false);
  });

  test("that was altered allows nothing", () => {
    for (const [name, value] of [
      ["expires", `${NOW / 1000 + 3600}`],
      ["expires", "9e99"],
      ["expires", ""],
      ["signature", ""],
      ["signature", `${query.get("signature")}A`],
    ] as const) {
      const altered = new URLSearchParams(query);
      altered.set(name, value);
      expect(links.verify("content", "f1", altered, NOW)).toBe(false);
    }
  });

  test("is valid for ten to twenty minutes, and the same for everybody for ten", () => {
    for (const offset of [0, 1, 599_999, 600_000]) {
      const lifetimeMs = linkEnd(NOW + offset) - (NOW + offset);
      expect(lifetimeMs).toBeGreaterThanOrEqual(600_000);
      expect(lifetimeMs).toBeLessThanOrEqual(1_200_000);
    }
    expect(linkEnd(NOW)).toBe(linkEnd(NOW + 599_999));
  });
});
