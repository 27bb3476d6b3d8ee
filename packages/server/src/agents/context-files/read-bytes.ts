import type { Blobs } from "../../files/blobs.ts";

/** The first bytes of an object, or all of it. Null if there is no such object. */
export async function readBytes(
  blobs: Blobs,
  name: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Uint8Array | null> {
  const blob = await beforeAbort(blobs.open(name), signal);
  if (!blob) return null;
  const end = Math.min(blob.size, maxBytes);
  if (end === 0) return new Uint8Array();
  const range = end < blob.size ? { start: 0, end } : undefined;
  const reader = (await beforeAbort(blob.stream(range), signal)).getReader();
  try {
    const bytes = new Uint8Array(end);
    let length = 0;
    while (length < end) {
      const { done, value } = await beforeAbort(reader.read(), signal);
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

/** Rejects with the signal's reason if it aborts first. The work itself goes on. */
async function beforeAbort<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
