import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { animationIn } from "../src/files/animations.ts";
import { detectType } from "../src/files/detect-type.ts";
import { cleanPicture, cleanProfilePicture, isPicture } from "../src/files/images.ts";
import {
  animatedGif,
  animatedPng,
  animatedWebp,
  animatedWebpWithProfile,
  bmp,
  gifOnCanvas,
  hugePng,
  jpegWithExif,
  jpegWithProfile,
  losslessWebp,
  pngWithExif,
  pngWithProfile,
  SECRET,
  webpWithProfile,
} from "./support/pictures.ts";

const folder = mkdtempSync(join(tmpdir(), "parley-images-"));
afterAll(() => rmSync(folder, { recursive: true }));

async function fileOf(bytes: Uint8Array | string): Promise<string> {
  const path = join(folder, Bun.randomUUIDv7());
  await Bun.write(path, bytes);
  return path;
}

/** Cleans a picture, and returns what is known of it and what would be served. */
async function clean(bytes: Uint8Array, work = cleanPicture, maxBytes = 25 << 20) {
  const path = await fileOf(bytes);
  const [cleaned, preview] = [`${path}.cleaned`, `${path}.preview`];
  const picture = await work(path, { cleaned, preview, maxPixels: 50_000_000, maxBytes });
  const served = Buffer.from(await Bun.file(cleaned).bytes());
  const written = readdirSync(folder).filter((name) => name.startsWith(`${basename(path)}.`));
  expect(written.sort()).toEqual([basename(cleaned), basename(preview)]);
  for (const each of [cleaned, preview]) expect(statSync(each).mode & 0o777).toBe(0o600);
  return {
    ...picture,
    served,
    preview: await new Bun.Image(preview).metadata(),
    previewBytes: Buffer.from(await Bun.file(preview).bytes()),
  };
}

const trailing = (bytes: Uint8Array) =>
  Buffer.concat([bytes, Buffer.from(`<script>alert("${SECRET}")</script>`)]);

describe("a picture", () => {
  const pictures = {
    "image/jpeg": jpegWithExif,
    "image/png": pngWithExif,
    "image/webp": async () => animatedWebp(),
    "image/gif": async () => animatedGif(),
  };

  for (const [type, make] of Object.entries(pictures)) {
    test(`of the type ${type} is served without metadata and trailing bytes`, async () => {
      const bytes = trailing(await make());
      expect(await detectType(await fileOf(bytes))).toBe(type);
      expect(Buffer.from(bytes).includes(SECRET)).toBe(true);
      const picture = await clean(bytes);
      expect(picture.type).toBe(type);
      expect(picture.served.includes(SECRET)).toBe(false);
      expect(picture.served.includes("<script>")).toBe(false);
      expect(picture.placeholder).toStartWith("data:image/png;base64,");
      expect(picture.preview.format).toBe("webp");
    });
  }

  test("is turned as its camera was", async () => {
    const { width, height, served, preview } = await clean(await jpegWithExif());
    expect([width, height]).toEqual([32, 64]);
    expect(await new Bun.Image(served).metadata()).toMatchObject({ width: 32, height: 64 });
    expect(preview).toMatchObject({ width: 32, height: 64 });
  });

  test("keeps its frames", async () => {
    const frames = (bytes: Buffer, mark: string) => bytes.toString("latin1").split(mark).length - 1;
    expect(frames((await clean(animatedWebp())).served, "ANMF")).toBe(2);
    expect(frames((await clean(animatedGif())).served, "\u0021\u00f9\u0004")).toBe(2);
    expect((await clean(animatedGif())).served.includes("NETSCAPE2.0")).toBe(true);
  });

  test("that is larger than the preview is scaled down in it, a smaller one is not enlarged", async () => {
    expect((await clean(bmp(1600, 400))).preview).toMatchObject({ width: 640, height: 160 });
    expect((await clean(bmp(16, 4))).preview).toMatchObject({ width: 16, height: 4 });
  });

  test("of a format without compression becomes a PNG", async () => {
    expect(await clean(bmp())).toMatchObject({ type: "image/png", width: 64, height: 32 });
  });

  test("with too many pixels is refused before it is decoded", async () => {
    await expect(clean(hugePng(100_000, 100_000))).rejects.toMatchObject({
      code: "payload_too_large",
    });
  });

  test("with a very long side is refused before it is decoded", async () => {
    for (const [width, height] of [
      [1, 16_385],
      [50_000_000, 1],
    ] as const) {
      const tooLong = { code: "payload_too_large", message: expect.stringContaining("16384") };
      await expect(clean(hugePng(width, height))).rejects.toMatchObject(tooLong);
      await expect(clean(hugePng(width, height), cleanProfilePicture)).rejects.toMatchObject(
        tooLong,
      );
    }
  });

  test("whose canvas is larger than its frame has the size of the canvas, which is checked", async () => {
    expect(await clean(gifOnCanvas(300, 200))).toMatchObject({ width: 300, height: 200 });
    expect(await clean(gifOnCanvas(0, 0))).toMatchObject({ width: 2, height: 2 });
    for (const [width, height, why] of [
      [10_000, 10_000, "too many pixels"],
      [65_535, 1, "16384"],
    ] as const) {
      for (const work of [cleanPicture, cleanProfilePicture]) {
        await expect(clean(gifOnCanvas(width, height), work)).rejects.toMatchObject({
          code: "payload_too_large",
          message: expect.stringContaining(why),
        });
      }
    }
  });

  test("that is a lossless WebP keeps every pixel, and loses its metadata", async () => {
    const bytes = await losslessWebp();
    const pixels = async (each: Uint8Array) => Buffer.from(await new Bun.Image(each).png().bytes());
    const { served, type } = await clean(trailing(bytes));
    expect(type).toBe("image/webp");
    expect(served.includes(SECRET)).toBe(false);
    expect(await pixels(served)).toEqual(await pixels(bytes));
  });

  test("that is an animated PNG becomes a still of its first frame", async () => {
    const bytes = await animatedPng();
    expect(await detectType(await fileOf(bytes))).toBe("image/apng");
    const { served, type } = await clean(bytes);
    expect(type).toBe("image/png");
    for (const mark of ["acTL", "fdAT"]) expect(served.includes(mark)).toBe(false);
  });

  test("that grows beyond the limit of a file when it is encoded again is refused", async () => {
    await expect(clean(bmp(), cleanPicture, 50)).rejects.toMatchObject({
      code: "payload_too_large",
    });
    await expect(clean(animatedGif(), cleanPicture, 50)).rejects.toMatchObject({
      code: "payload_too_large",
    });
  });

  const profiled = { pngWithProfile, jpegWithProfile, webpWithProfile, animatedWebpWithProfile };
  for (const [name, make] of Object.entries(profiled)) {
    test(`loses a large colour profile: ${name}`, async () => {
      for (const work of [cleanPicture, cleanProfilePicture]) {
        const { served, previewBytes } = await clean(await make(5000), work);
        for (const bytes of [served, previewBytes]) {
          expect(bytes.includes(SECRET)).toBe(false);
          for (const mark of ["iCCP", "ICC_PROFILE", "ICCP"])
            expect(bytes.includes(mark)).toBe(false);
        }
      }
    });

    test(`keeps a small colour profile: ${name}`, async () => {
      const { served } = await clean(await make(600));
      expect(/iCCP|ICC_PROFILE|ICCP/.test(served.toString("latin1"))).toBe(true);
    });
  }

  test("with a colour profile that inflates to very many bytes stays small", async () => {
    const picture = await clean(await pngWithProfile(30 << 20), cleanProfilePicture);
    expect(picture.served.length).toBeLessThan(10_000);
    expect(picture.previewBytes.length).toBeLessThan(10_000);
  });

  test("of many small blocks is written in few parts", async () => {
    const gif = Buffer.from(animatedGif());
    const trailer = gif.indexOf(0x3b, gif.lastIndexOf(0x2c));
    const image = Buffer.from([0x2c, 0, 0, 0, 0, 2, 0, 2, 0, 0, 2, 2, 0x84, 0x51, 0]);
    const images = Buffer.alloc(image.length * 30_000, image);
    const bytes = Buffer.concat([gif.subarray(0, trailer), images, Buffer.from([0x3b])]);
    expect(animationIn(bytes)?.parts.length).toBeLessThan(10);
    expect((await clean(bytes)).served.includes(images)).toBe(true);
  });

  test("that is damaged is refused", async () => {
    const png = await pngWithExif();
    const gif = animatedGif();
    for (const bytes of [
      png.subarray(0, 100),
      gif.subarray(0, 40),
      animatedWebp().subarray(0, 60),
    ]) {
      await expect(clean(bytes)).rejects.toMatchObject({ code: "unsupported_media_type" });
    }
  });

  test("of very many tiny blocks is refused: reading them would hold up others", async () => {
    const gif = Buffer.from(animatedGif());
    const comment = Buffer.concat([
      Buffer.from([0x21, 0xfe]),
      Buffer.alloc(300_000, Buffer.from([1, 65])),
      Buffer.from([0]),
    ]);
    const afterColors = 19;
    const blocks = Buffer.concat([
      gif.subarray(0, afterColors),
      comment,
      gif.subarray(afterColors),
    ]);
    await expect(clean(blocks)).rejects.toMatchObject({ code: "unsupported_media_type" });
    const webp = Buffer.from(animatedWebp());
    const empty = Buffer.alloc(8 * 20_000, Buffer.from("junk\0\0\0\0"));
    const chunks = Buffer.concat([webp, empty]);
    chunks.writeUInt32LE(chunks.length - 8, 4);
    await expect(clean(chunks)).rejects.toMatchObject({ code: "unsupported_media_type" });
  });

  test("whose metadata cannot be removed is refused", () => {
    expect(() => isPicture("image/avif")).toThrow("send JPEG, PNG, WebP or GIF");
    expect(() => isPicture("image/heic")).toThrow("send JPEG, PNG, WebP or GIF");
    expect(isPicture("image/svg+xml")).toBe(false);
    expect(isPicture("application/pdf")).toBe(false);
  });
});

describe("a picture of an account or a group", () => {
  const cleanProfile = (bytes: Uint8Array) => clean(bytes, cleanProfilePicture);

  test("is a small still without metadata and trailing bytes", async () => {
    for (const make of [jpegWithExif, pngWithExif, animatedWebp, animatedGif]) {
      const picture = await cleanProfile(trailing(await make()));
      expect(picture.type).toBe("image/webp");
      expect(picture.served.includes(SECRET)).toBe(false);
      expect(picture.served.includes("<script>")).toBe(false);
      expect(picture.served.includes("ANMF")).toBe(false);
    }
  });

  test("is scaled down, and its preview fills a square", async () => {
    const wide = await cleanProfile(bmp(1600, 400));
    expect(wide).toMatchObject({ width: 512, height: 128 });
    expect(wide.preview).toMatchObject({ width: 512, height: 128 });
    const square = await cleanProfile(bmp(1000, 1000));
    expect(square.preview).toMatchObject({ width: 192, height: 192 });
    expect(await cleanProfile(bmp(16, 4))).toMatchObject({ width: 16, height: 4 });
  });

  test("is turned as its camera was", async () => {
    expect(await cleanProfile(await jpegWithExif())).toMatchObject({ width: 32, height: 64 });
  });

  test("that is damaged or has too many pixels is refused", async () => {
    await expect(cleanProfile((await pngWithExif()).subarray(0, 100))).rejects.toMatchObject({
      code: "unsupported_media_type",
    });
    await expect(cleanProfile(hugePng(100_000, 100_000))).rejects.toMatchObject({
      code: "payload_too_large",
    });
  });
});

describe("the detected type", () => {
  const utf16 = (text: string) => Buffer.from(`\ufeff${text}`, "utf16le");
  const latin = (text: string) => Buffer.from(text, "latin1");
  const types: readonly (readonly [string, string | Uint8Array, string])[] = [
    ["text", "hello, wörld\n", "text/plain"],
    ["an empty file", "", "text/plain"],
    ["bytes", new Uint8Array([0, 1, 2, 255]), "application/octet-stream"],
    ["a PDF", "%PDF-1.7\n%\u00e2\u00e3\n1 0 obj\n<<>>\nendobj\n", "application/pdf"],
    [
      "SVG",
      '\n<?xml version="1.0"?>\n<!-- c -->\n<svg xmlns="http://www.w3.org/2000/svg"/>',
      "image/svg+xml",
    ],
    ["HTML", "  <!DOCTYPE html><p>hi", "text/html"],
    ["a script in a page", "<p></p><script>alert(1)</script>", "text/html"],
    ["XML", '<?xml version="1.0"?><a/>', "application/xml"],
    ["text that begins with a bracket", "<3 you", "text/plain"],
    ["text that begins like a picture", "BMI,age,weight\n22,30,70\n", "text/plain"],
    ["text that begins like an animation", "GIF89a is a format name", "text/plain"],
    ["text that begins like music", "ID3 tags explained", "text/plain"],
    ["a PDF of ASCII only", "%PDF-1.4\n1 0 obj\n<<>>\nendobj\n", "application/pdf"],
    ["text in UTF-16", utf16("Grüße 😀"), "text/plain; charset=utf-16le"],
    ["text in UTF-16 of the other order", utf16("Grüße").swap16(), "text/plain; charset=utf-16be"],
    ["HTML in UTF-16", utf16("<!doctype html><script>alert(1)</script>"), "text/html"],
    ["a mark before bytes that are no text", utf16("\u0001\u0002"), "application/octet-stream"],
    ["long text in UTF-16", utf16("a".repeat(40_000)), "text/plain; charset=utf-16le"],
    ["text in windows-1252", latin("Viele Grüße\r\n"), "text/plain; charset=windows-1252"],
    ["HTML in windows-1252", latin("<html>Viele Grüße"), "text/html"],
    [
      "text in another old encoding",
      new Uint8Array([...Buffer.from("a, "), 0xcf, 0xf0, 0xe8, 0xe2, 0xe5, 0xf2]),
      "application/octet-stream",
    ],
    ["bytes without zeros", latin("\u0001\u0002abcdefghijk\u00ff"), "application/octet-stream"],
    ["a comment without end", `<!--${"-".repeat(60_000)}`, "text/plain"],
    [
      "text of which a character is cut by the end of what is read",
      `${"a".repeat(65_535)}ä`,
      "text/plain",
    ],
  ];

  for (const [what, bytes, type] of types) {
    test(`of ${what} is ${type}`, async () => {
      expect(await detectType(await fileOf(bytes))).toBe(type);
    });
  }
});
