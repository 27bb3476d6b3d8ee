import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import { badField, Failure, unavailable } from "../rules/failure.ts";

const OWNER_ONLY = 0o600;

/**
 * Writes the bytes of an upload to a file in a folder. The file is removed when the result is
 * disposed, unless it was moved, and when the upload fails. Holds one chunk in memory at a time.
 */
export async function receiveUpload(
  bytes: ReadableStream<Uint8Array> | null,
  { folder, size }: { folder: string; size: number },
) {
  const path = join(folder, Bun.randomUUIDv7());
  await using file = new AsyncDisposableStack();
  file.defer(() => rm(path, { force: true }));
  const written = await write(bytes ?? new Blob([]).stream(), path, size);
  if (written < size) throw badField("size", `is ${size}, but only ${written} bytes were sent`);
  const kept = file.move();
  return { path, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

async function write(bytes: ReadableStream<Uint8Array>, path: string, size: number) {
  await using file = await open(path, "wx", OWNER_ONLY).catch(diskFailed);
  let written = 0;
  for await (const chunk of bytes) {
    written += chunk.byteLength;
    if (written > size) throw tooLarge(size);
    await file.writeFile(chunk).catch(diskFailed);
  }
  return written;
}

const tooLarge = (size: number) =>
  new Failure(
    "payload_too_large",
    `payload too large: more bytes than the declared size of ${size}`,
  );

function diskFailed(error: NodeJS.ErrnoException): never {
  throw unavailable(`the file storage failed (${error.code ?? "unknown error"})`);
}
