import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FaultyProxy } from "@parley/testkit/proxy.ts";
import { startS3 } from "@parley/testkit/s3.ts";
import type { Blobs } from "../src/files/blobs.ts";
import { openDiskBlobs } from "../src/files/disk.ts";
import { openS3Blobs } from "../src/files/s3.ts";
import { blockThreadPool } from "./support/thread-pool.ts";

const root = mkdtempSync(join(tmpdir(), "parley-blobs-"));
const s3 = await startS3();
afterAll(async () => {
  await s3[Symbol.asyncDispose]();
  rmSync(root, { recursive: true });
});

mkdirSync(join(root, "incoming"));
const inBucket = async (prefix: string, options = {}) =>
  openS3Blobs(
    {
      endpoint: s3.url,
      bucket: s3.bucket,
      prefix,
      timeoutMs: 20_000,
      ...s3.credentials,
      ...options,
    },
    join(root, "incoming"),
  );

const backends = {
  disk: (name: string) => openDiskBlobs(join(root, name)),
  S3: (name: string) => inBucket(`${name}/`),
};

const MIB = 1024 * 1024;

/** Bytes that differ at every place, so that a wrong range is noticed. */
function someBytes(length: number): Uint8Array {
  const words = new Uint32Array(Math.ceil(length / 4)).map((_, place) => place * 2654435761);
  return new Uint8Array(words.buffer, 0, length);
}

/** Stores bytes, and returns the name of the object. */
async function stored(blobs: Blobs, bytes: Uint8Array | string, name: string = Bun.randomUUIDv7()) {
  const path = join(blobs.incoming, Bun.randomUUIDv7());
  await Bun.write(path, bytes);
  await blobs.put(name, path);
  expect(await Bun.file(path).exists()).toBe(false);
  return name;
}

const textOf = async (blobs: Blobs, name: string) => {
  const blob = await blobs.open(name);
  return blob && (await new Response(await blob.stream()).text());
};

async function namesIn(blobs: Blobs): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of blobs.list()) names.push(name);
  return names.sort();
}

for (const [backend, open] of Object.entries(backends)) {
  describe(`objects on ${backend}`, () => {
    test("are read as they were stored, whole and in ranges", async () => {
      const blobs = await open("ranges");
      const bytes = someBytes(12 * MIB + 7);
      const blob = await blobs.open(await stored(blobs, bytes));
      expect(blob?.size).toBe(bytes.length);
      const read = await new Response(await blob?.stream()).bytes();
      expect(Buffer.compare(read, bytes)).toBe(0);
      for (const [start, end] of [
        [0, 2],
        [5 * MIB - 2, 5 * MIB + 2],
        [bytes.length - 3, bytes.length],
      ] as const) {
        const part = await new Response(await blob?.stream({ start, end })).bytes();
        expect([...part]).toEqual([...bytes.subarray(start, end)]);
      }
    });

    test("may be empty", async () => {
      const blobs = await open("empty");
      const name = await stored(blobs, "");
      expect((await blobs.open(name))?.size).toBe(0);
      expect(await textOf(blobs, name)).toBe("");
    });

    test("are replaced when they are stored again", async () => {
      const blobs = await open("replaced");
      const name = await stored(blobs, "first");
      await stored(blobs, "second", name);
      expect(await textOf(blobs, name)).toBe("second");
    });

    test("are gone once they are deleted", async () => {
      const blobs = await open("deleted");
      const [kept, gone] = [await stored(blobs, "kept"), await stored(blobs, "gone")];
      await blobs.delete(gone);
      await blobs.delete(gone);
      expect(await blobs.open(gone)).toBeNull();
      expect(await textOf(blobs, kept)).toBe("kept");
    });

    test("are listed with size and time", async () => {
      const blobs = await open("listed");
      const names = [];
      for (const text of ["a", "bb"]) names.push(await stored(blobs, text));
      names.push(await stored(blobs, "preview", `${names[0]}.preview`));
      expect(await namesIn(blobs)).toEqual(names.sort());
      for await (const { size, modifiedAt } of blobs.list()) {
        expect(size).toBeGreaterThan(0);
        expect(Math.abs(Date.now() - modifiedAt)).toBeLessThan(60_000);
      }
    });
  });
}

describe("S3", () => {
  test("with wrong credentials is unavailable", async () => {
    const blobs = await inBucket("wrong/", { accessKeyId: "wrong" });
    await expect(stored(blobs, "x")).rejects.toMatchObject({ code: "unavailable" });
    await expect(blobs.open("x")).rejects.toMatchObject({ code: "unavailable" });
  });

  test("that breaks the connection leaves nothing behind, and works afterwards", async () => {
    await using proxy = await FaultyProxy.to(s3.url);
    const blobs = await inBucket("broken/", { endpoint: proxy.url });
    proxy.refuse(true);
    await expect(stored(blobs, "x", "one")).rejects.toMatchObject({ code: "unavailable" });
    proxy.reset();
    expect(await namesIn(blobs)).toEqual([]);
    await stored(blobs, "y", "one");
    expect(await textOf(blobs, "one")).toBe("y");
  });
});

test("a folder that is full or cannot be written is unavailable", async () => {
  const blobs = await openDiskBlobs(join(root, "occupied"));
  const name = Bun.randomUUIDv7();
  // A file where the folder of the object should be.
  await Bun.write(join(root, "occupied", name.slice(-2)), "");
  await expect(stored(blobs, "x", name)).rejects.toMatchObject({ code: "unavailable" });
});

test("what a restore or a file system has in the folder is not taken for objects", async () => {
  const folder = join(root, "mounted");
  const blobs = await openDiskBlobs(folder);
  const name = await stored(blobs, "x");
  for (const other of ["restoring", "lost+found"]) {
    await Bun.write(join(folder, other, Bun.randomUUIDv7()), "y");
  }
  expect(await namesIn(blobs)).toEqual([name]);
});

test("files on disk are readable for their owner alone", async () => {
  const folder = join(root, "private");
  const blobs = await openDiskBlobs(folder);
  await stored(blobs, "x");
  for (const name of readdirSync(folder)) {
    const { stdout } = Bun.spawnSync(["stat", "-c", "%a", join(folder, name)]);
    expect(stdout.toString().trim()).toBe("700");
  }
});

test("objects on disk are read on the thread pool, so that a slow disk does not block the event loop", async () => {
  const blobs = await backends.disk("slow");
  const blob = await blobs.open(await stored(blobs, "hello"));
  const states: string[] = [];
  const reading = async () => {
    const text = await new Response(await blob?.stream()).text();
    states.push(text);
  };
  let read: Promise<void>;
  {
    await using _slow = blockThreadPool(join(root, "pipe"));
    read = reading();
    for (let turn = 0; turn < 100; turn++) await new Promise((resolve) => setImmediate(resolve));
    states.push("the event loop goes on");
  }
  await read;
  expect(states).toEqual(["the event loop goes on", "hello"]);
});
