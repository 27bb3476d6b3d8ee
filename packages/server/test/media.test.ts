import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { durationOf } from "../src/files/media.ts";

const folder = mkdtempSync(join(tmpdir(), "parley-media-"));
afterAll(() => rmSync(folder, { recursive: true }));

async function fileOf(bytes: Uint8Array): Promise<string> {
  const path = join(folder, Bun.randomUUIDv7());
  await Bun.write(path, bytes);
  return path;
}

/** A recording of silence: 8,000 samples of one byte a second. */
function wav(seconds: number): Uint8Array {
  const samples = 8000 * seconds;
  const header = Buffer.alloc(44);
  header.write("RIFF....WAVEfmt ");
  header.writeUInt32LE(36 + samples, 4);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(8000, 24);
  header.writeUInt32LE(8000, 28);
  header.writeUInt16LE(1, 32);
  header.writeUInt16LE(8, 34);
  header.write("data", 36);
  header.writeUInt32LE(samples, 40);
  return Buffer.concat([header, Buffer.alloc(samples, 128)]);
}

/** An MP3 that begins with half a million tags, which take long to read. */
function tags(): Uint8Array {
  const tag = Buffer.from("TXXX\0\0\0\x03\0\0\0a\0", "latin1");
  const tags = Buffer.alloc(500_000 * tag.length, tag);
  const size = [21, 14, 7, 0].map((shift) => (tags.length >> shift) & 127);
  return Buffer.concat([Buffer.from("ID3\x03\0\0", "latin1"), Buffer.from(size), tags]);
}

test("the duration of a recording is read from the file", async () => {
  const path = await fileOf(wav(2));
  let duration: number | null;
  // On a busy machine it may not be read in time.
  do {
    duration = await durationOf(path, "audio/vnd.wave");
  } while (duration === null);
  expect(duration).toBe(2000);
});

test("a file without a duration has none", async () => {
  expect(await durationOf(await fileOf(wav(0).subarray(0, 20)), "audio/vnd.wave")).toBeNull();
  expect(await durationOf(await fileOf(wav(1)), "text/plain")).toBeNull();
});

test("a file that takes too long to read has none, and does not hold up others", async () => {
  let ticks = 0;
  const timer = setInterval(() => ticks++, 50);
  expect(await durationOf(await fileOf(tags()), "audio/mpeg")).toBeNull();
  clearInterval(timer);
  expect(ticks).toBeGreaterThan(0);
});
