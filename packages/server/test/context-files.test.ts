import { describe, expect, test } from "bun:test";
import { availableParallelism } from "node:os";
import { deflateSync } from "node:zlib";
import type { File } from "@parley/protocol";
import { createContextFiles } from "../src/agents/context-files/index.ts";
import { PdfInspector } from "../src/agents/context-files/pdf-pages.ts";
import { scaleImage } from "../src/agents/context-files/prepare-file.ts";
import { type PdfFacts, scanPdf } from "../src/agents/context-files/scan-pdf.ts";
import { Semaphore } from "../src/agents/context-files/semaphore.ts";
import type { Blob, Blobs } from "../src/files/blobs.ts";
import { decodeInTurn } from "../src/files/decoding.ts";
import { createLogger } from "../src/observe/log.ts";
import { unavailable } from "../src/rules/failure.ts";
import type { Store } from "../src/store/store.ts";
import { animatedGif, animatedWebp, bmp } from "./support/pictures.ts";

const MAX_PIXELS = 50_000_000;
const running = new AbortController().signal;

describe("a picture for a model", () => {
  const sizeOf = async ({ data }: { data: Uint8Array }) => {
    const { width, height, format } = await new Bun.Image(data).metadata();
    return `${format} ${width} × ${height}`;
  };

  test("is scaled down in its own format, and never enlarged", async () => {
    const large = new Bun.Image(bmp(2000, 100));
    const webp = await scaleImage(await large.webp().bytes(), MAX_PIXELS);
    expect(webp.media_type).toBe("image/webp");
    expect(await sizeOf(webp)).toBe("webp 1568 × 78");
    const jpeg = await scaleImage(await large.jpeg().bytes(), MAX_PIXELS);
    expect(await sizeOf(jpeg)).toBe("jpeg 1568 × 78");
    const small = await new Bun.Image(bmp()).png().bytes();
    expect(await scaleImage(small, MAX_PIXELS)).toEqual({
      type: "image",
      media_type: "image/png",
      data: small,
    });
  });

  test("is the first frame of an animation", async () => {
    expect(await sizeOf(await scaleImage(animatedGif(), MAX_PIXELS))).toBe("png 2 × 2");
    expect(await sizeOf(await scaleImage(animatedWebp(), MAX_PIXELS))).toBe("webp 64 × 32");
  });

  test("is the first frame of a GIF, whose other blocks are not read", async () => {
    const whole = animatedGif();
    const frames = whole.subarray(0, whole.lastIndexOf(0x3b));
    const comments = Buffer.alloc(5 * 600_000, Uint8Array.of(0x21, 0xfe, 1, 0x61, 0));
    const gif = Buffer.concat([frames, comments]);
    expect(await sizeOf(await scaleImage(gif, MAX_PIXELS))).toBe("png 2 × 2");
  });

  test("has at most 2 MiB", async () => {
    const noise = Buffer.from(bmp(1200, 1200));
    crypto.getRandomValues(noise.subarray(54, 54 + 65_536));
    for (let at = 54 + 65_536; at < noise.length; at++) {
      noise[at] = (noise[at - 65_536] ?? 0) ^ (at * 31);
    }
    const png = await new Bun.Image(noise).png().bytes();
    const part = await scaleImage(png, MAX_PIXELS);
    expect(part.data.length).toBeLessThan(2 << 20);
    expect(part.media_type).toBe(png.length > 2 << 20 ? "image/jpeg" : "image/png");
  });
});

describe("the pages of a PDF", () => {
  const pages = (pdf: string | Buffer) => scanPdf(Buffer.from(pdf)).pages;
  const TOO_MANY = 101;

  /** An object stream with this content, or with these encoded bytes. */
  const objectStream = (content: string | Buffer) =>
    Buffer.concat([
      Buffer.from("5 0 obj<</Type/ObjStm/Filter/FlateDecode>>stream\r\n"),
      typeof content === "string" ? deflateSync(`7 0 ${content}`) : content,
      Buffer.from("\r\nendstream"),
    ]);

  test("are counted by their objects", () => {
    expect(pages("<</Type/Pages/Count 2>> <</Type/Page>> <</Type /Page/X 1>>")).toBe(2);
    expect(pages("<</Type/PageLabel>> <</Page 3>> <</Type\n/Page\n>>")).toBe(1);
    expect(pages("<</Type/#50age>> <</T#79pe%\n/P#61g#65>> <</Type/Page#73>>")).toBe(2);
  });

  test("are counted by the root of their tree if that has more", () => {
    expect(pages("<</Type/Pages/Kids[4 0 R]/Count 40>> <</Type/Page>>")).toBe(40);
    expect(pages("<</Kids[4 0 R]/Coun#74%a\n+40>>")).toBe(40);
    expect(pages(objectStream("<</Kids[4 0 R]/Count 40>>"))).toBe(40);
    expect(pages("<</Type/Pages/Kids[4 0 R]/Count 4000000000>>")).toBe(TOO_MANY);
  });

  test("are not the bookmarks", () => {
    expect(pages("\n<</Type/Outlines/First 5 0 R/Last 9 0 R/Count 80>><</Type/Page>>")).toBe(1);
    expect(pages("<</Title(a)/First 5 0 R/Last 9 0 R/Count -80>><</Type/Page>>")).toBe(1);
    const comment = "-".repeat(300);
    expect(pages(`\n<</Kids[4 0 R]%${comment}<<\n/First 1/Count 80>>`)).toBe(80);
    expect(pages("\n<</Kids[4 0 R]/X<<>>/First 1/Count 80>>")).toBe(80);
    expect(pages("\n<</Kids[4 0 R]/X(<<)/First 1/Count 80>>")).toBe(80);
    expect(pages("\n<</Kids[4 0 R]%<<\n/First 1/Count 80>>")).toBe(80);
    expect(pages("\n<</First 1/Count 80%>>\n/Kids[4 0 R]>>")).toBe(80);
    expect(pages("\n<</First 1/Count 80/X(>>)/Kids[4 0 R]>>")).toBe(80);
    expect(pages("\n<</First 1/Count 80/Kids[4 0 R]>>")).toBe(80);
  });

  test("are counted in compressed streams too", () => {
    expect(pages(objectStream("<</Type/Page/Parent 1>> <</Type/Page/Parent 1>>"))).toBe(2);
    const many = Array.from({ length: 300 }, (_, at) => objectStream(at < 250 ? "<<>>" : "9"));
    expect(pages(Buffer.concat([...many, objectStream("<</Type/Page>>")]))).toBe(1);
  });

  test("are too many if an object stream cannot be read", () => {
    const page = Buffer.from("<</Type/Page>>");
    const isTooLong = (stream: Buffer) =>
      expect(pages(Buffer.concat([page, stream]))).toBe(TOO_MANY);
    isTooLong(objectStream(Buffer.from("broken")));
    isTooLong(objectStream(deflateSync("7 0 <<>>").subarray(0, -6)));
    isTooLong(objectStream(deflateSync(deflateSync("7 0 <<>>"))));
    isTooLong(objectStream(" ".repeat(17 << 20)));
    isTooLong(Buffer.concat(Array.from({ length: 5 }, () => objectStream(" ".repeat(4 << 20)))));
    isTooLong(Buffer.concat(Array.from({ length: 1001 }, () => objectStream("<<>>"))));
    isTooLong(Buffer.from("<</Type/Obj#53tm/Filter/LZWDecode>>stream\nabc\nendstream"));
  });

  test("are too many if a reference hides their type or number", () => {
    expect(pages("<</Type 5 0 R>> 5 0 obj/Page endobj")).toBe(TOO_MANY);
    expect(pages("<</Type/Pages/Count 5 0 R>>")).toBe(TOO_MANY);
  });

  test("are at least as many as the size suggests", () => {
    expect(pages(Buffer.alloc(120_000))).toBe(3);
    expect(pages(Buffer.concat([Buffer.from("<</Type/Page>>"), Buffer.alloc(1_200_000)]))).toBe(3);
  });

  test.each(["/Page ", "/Type/Page ", "/Encrypt", "/ObjStm", "/Count 1 ", "<</First/Count 1"])(
    "are counted on another thread, which is ended, in a text full of %j",
    async (content) => {
      let wentOn = false;
      setImmediate(() => {
        wentOn = true;
      });
      await new PdfInspector().inspect("a", Buffer.alloc(12 << 20, content));
      expect(wentOn).toBe(true);
    },
  );

  test("are too many in object streams that inflate to a lot", async () => {
    const streams = Array.from({ length: 20 }, () => objectStream("/Page ".repeat(600_000)));
    const facts = await new PdfInspector().inspect("a", Buffer.concat(streams));
    expect(facts?.pages ?? TOO_MANY).toBe(TOO_MANY);
  });

  test("are counted once for each file", async () => {
    const pdfs = new PdfInspector();
    /** Inspects until there is an answer: on a busy machine there may be none in time. */
    const inspect = async (id: string, text: string): Promise<PdfFacts> =>
      (await pdfs.inspect(id, Buffer.from(text))) ?? inspect(id, text);
    const facts = { encrypted: false, pages: 1 };
    expect(await inspect("a", "<</Type/Page>>")).toEqual(facts);
    expect(await inspect("a", "not read again")).toEqual(facts);
    expect(await inspect("b", "<</Encrypt 5 0 R>>")).toMatchObject({ encrypted: true });
  });
});

describe("a semaphore", () => {
  test("grants in order, and gives back what is released or shrunk", async () => {
    const semaphore = new Semaphore(10);
    const first = await semaphore.acquire(8, running);
    const large = semaphore.acquire(5, running);
    const small = semaphore.acquire(1, running);
    expect([Bun.peek.status(large), Bun.peek.status(small)]).toEqual(["pending", "pending"]);
    first.shrink(4);
    (await large)[Symbol.dispose]();
    await small;
    first[Symbol.dispose]();
    first[Symbol.dispose]();
    await semaphore.acquire(9, running);
  });

  test("does not wait for a task that gave up", async () => {
    const semaphore = new Semaphore(1);
    const held = await semaphore.acquire(1, running);
    const stop = new AbortController();
    const given = semaphore.acquire(5, stop.signal);
    const next = semaphore.acquire(1, running);
    stop.abort(new Error("stopped"));
    await expect(given).rejects.toThrow("stopped");
    held[Symbol.dispose]();
    await next;
  });
});

describe("loading files for a model", () => {
  const limits = {
    protocol: "anthropic",
    context_tokens: 100_000,
    max_output_tokens: 4096,
    image_pixels: MAX_PIXELS,
  } as const;

  const textFile = (id: string, size: number, type = "text/plain"): File => ({
    id,
    name: `${id}.txt`,
    type,
    size,
    width: null,
    height: null,
    duration_ms: null,
    status: "ready",
    placeholder: null,
  });

  interface LoadOptions {
    maxHeldBytes?: number;
    timeoutMs?: number;
  }

  /** Finds the bytes of files in objects of the same name. */
  function loaderOf(open: Blobs["open"], files: File[], options: LoadOptions = {}) {
    const records = files.map(({ id }) => ({ id, blob: id }));
    const store = { read: async () => records } as unknown as Pick<Store, "read">;
    const blobs = { open } as Blobs;
    return createContextFiles({ store, blobs, log: createLogger("silent"), ...options });
  }

  async function load(
    open: Blobs["open"],
    files: File[],
    { turn = running, ...options }: LoadOptions & { turn?: AbortSignal } = {},
  ) {
    using opened = loaderOf(open, files, options).open(turn);
    await opened.load(files, limits);
    return files.map(({ id }) => opened.loaded.get(id));
  }

  const blobOf = (bytes: string | Uint8Array): Blob => {
    const content = new Blob([bytes as string]);
    return {
      size: content.size,
      stream: async (range) => (range ? content.slice(range.start, range.end) : content).stream(),
    };
  };

  test("reads texts, and tells which are blank", async () => {
    const open = async (name: string) => blobOf(name === "blank" ? " \n" : "hello");
    expect(await load(open, [textFile("a", 5), textFile("blank", 2)])).toEqual([
      {
        status: "shown",
        part: { type: "file", name: "a.txt", media_type: "text/plain", data: Buffer.from("hello") },
        tokens: expect.any(Number),
        isCut: false,
      },
      { status: "empty" },
    ]);
  });

  test("replaces characters that are no text", async () => {
    const [file] = await load(async () => blobOf("a\0b"), [textFile("a", 3)]);
    expect(file).toMatchObject({ status: "shown", part: { data: Buffer.from("a\ufffdb") } });
  });

  test("cuts a long text between characters, within its tokens", async () => {
    const text = "🦜".repeat(100_000);
    const [file] = await load(async () => blobOf(text), [textFile("a", 400_000)]);
    if (file?.status !== "shown") throw new Error("the file is not shown");
    expect(file.isCut).toBe(true);
    expect(file.tokens).toBeWithin(15_000, 20_001);
    const shown = new TextDecoder().decode(file.part.data);
    expect(shown).toMatch(/^(🦜)+\n\[The rest is not shown\.\]$/u);
  });

  test("goes on without files whose bytes are missing, or whose storage fails or hangs", async () => {
    const open = async (name: string): Promise<Blob | null> => {
      if (name === "missing") return null;
      if (name === "fails") throw unavailable("the file storage failed");
      if (name === "hangs") return new Promise(() => {});
      if (name === "stalls") return { size: 5, stream: async () => new ReadableStream() };
      return blobOf("hello");
    };
    const names = ["missing", "fails", "good", "hangs", "stalls"];
    const loaded = await load(
      open,
      names.map((name) => textFile(name, 5)),
      { timeoutMs: 2000 },
    );
    expect(loaded.map((file) => file?.status)).toEqual([
      "unavailable",
      "unavailable",
      "shown",
      "unavailable",
      "unavailable",
    ]);
  });

  test("decodes pictures in turns with the uploads of this process", async () => {
    const png = await new Bun.Image(bmp()).png().bytes();
    const picture = { ...textFile("a", png.length), type: "image/png", width: 64, height: 32 };
    const gate = Promise.withResolvers<void>();
    let running = 0;
    const uploads = Array.from({ length: 3 }, () =>
      decodeInTurn("uploads", async () => {
        running++;
        await gate.promise;
      }),
    );
    expect(running).toBe(Math.min(2, Math.max(1, availableParallelism() - 1)));
    const open = async () => blobOf(png);
    expect(await load(open, [picture], { timeoutMs: 500 })).toEqual([{ status: "unavailable" }]);
    gate.resolve();
    await Promise.all(uploads);
    expect(await load(open, [picture])).toMatchObject([{ status: "shown" }]);
  });

  test("tells which pictures and documents cannot be read", async () => {
    const contents: Record<string, string> = {
      picture: "no picture",
      encrypted: "trailer <</Encrypt 5 0 R>>",
      plain: "about /Encrypt and <</Type/Page>>",
      long: "<</Type/Page>>".repeat(101),
    };
    const open = async (name: string) => blobOf(contents[name] ?? "");
    const files = [
      textFile("picture", 10, "image/png"),
      ...["encrypted", "plain", "long"].map((id) => textFile(id, 10_000, "application/pdf")),
    ];
    let statuses: unknown[];
    // On a busy machine the pages of a document may not be counted in time: it is then too long.
    do {
      statuses = (await load(open, files)).map((file) => file?.status);
    } while (statuses.slice(1, 3).includes("too_long"));
    expect(statuses).toEqual(["unreadable", "unreadable", "shown", "too_long"]);
  });

  test("waits for the memory that other turns hold, and goes on without files", async () => {
    const files = [textFile("a", 8)];
    const options = { maxHeldBytes: 10, timeoutMs: 2000 };
    const loader = loaderOf(async () => blobOf("12345678"), files, options);
    using first = loader.open(running);
    await first.load(files, limits);
    using second = loader.open(running);
    await second.load(files, limits);
    expect(second.loaded.get("a")).toEqual({ status: "unavailable" });
    using third = loader.open(running);
    const loading = third.load(files, limits);
    first[Symbol.dispose]();
    await loading;
    expect(third.loaded.get("a")?.status).toBe("shown");
  });

  test("ends with the turn", async () => {
    const turn = AbortSignal.abort(new Error("ended elsewhere"));
    const loading = load(async () => blobOf("hello"), [textFile("a", 5)], { turn });
    await expect(loading).rejects.toThrow("ended elsewhere");
  });
});
