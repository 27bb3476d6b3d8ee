import type { Blobs } from "../../files/blobs.ts";
import { untilAborted } from "../../security/guarded-fetch.ts";

/** The first bytes of an object, or all of it. Null if there is no such object. */
export async function readBytes(
  blobs: Blobs,
  name: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array | null> {
  const blob = await untilAborted(blobs.open(name), signal);
  if (!blob) return null;
  const end = Math.min(blob.size, maxBytes);
  if (end === 0) return new Uint8Array();
  const range = end < blob.size ? { start: 0, end } : undefined;
  const reader = (await untilAborted(blob.stream(range), signal)).getReader();
  try {
    const bytes = new Uint8Array(end);
    let length = 0;
    while (length < end) {
      const { done, value } = await untilAborted(reader.read(), signal);
      if (done) return bytes.subarray(0, length);
      bytes.set(value.subarray(0, end - length), length);
      length += value.length;
    }
    return bytes;
  } finally {
    // Not awaited: a storage that hangs would delay the turn.
    reader.cancel().catch(ignoreError);
  }
}

/** The bytes that were needed are read. */
const ignoreError = () => {};
