import { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import { ZipFile } from "yazl";
import { nextIteration } from "../../store/event-loop.ts";

/** A file of an archive. Its content is produced while the archive is written. */
export interface ZipEntry {
  readonly name: string;
  readonly content: AsyncIterable<string | Uint8Array>;
  /** Whether the content is compressed already, so that compressing it again is not worth it. */
  readonly isCompressed?: boolean;
}

/** Writes a ZIP archive as a stream, with one piece in memory. Compression runs on other threads. */
export async function* zip(
  entries: AsyncIterable<ZipEntry>,
  mtime: Date,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const archive = new ZipFile();
  const output = Readable.from(archive.outputStream, { highWaterMark: 1 });
  archive.on("error", (error) => output.destroy(error));
  let current: Readable | undefined;
  const add = async () => {
    for await (const { name, content, isCompressed = false } of entries) {
      if (output.destroyed) return;
      current = Readable.from(content, { highWaterMark: 1 });
      archive.addReadStream(current, name, { mtime, compress: !isCompressed });
      await finished(current);
    }
    archive.end();
  };
  const added = add().catch((error) => void output.destroy(error));
  try {
    for await (const piece of output) {
      yield piece;
      // The streams call each other without ever letting timers and requests have a turn.
      await nextIteration();
    }
  } finally {
    current?.destroy();
    await added;
  }
}
