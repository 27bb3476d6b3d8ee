import type { File } from "@parley/protocol";
import { notReached, readReply } from "../connection/http.ts";
import { callError } from "../errors.ts";

/** The slowest network that a transfer without progress events is made for. */
const MIN_BYTES_PER_SECOND = 64 * 1024;
/** How long the service may take for a file after it has received all of it. */
const PROCESSING_TIMEOUT_MS = 60_000;
/** A status. */
const PAYLOAD_TOO_LARGE = 413;

export interface TransferOptions {
  /** How long the transfer may stall. */
  timeoutMs: number;
  signal: AbortSignal;
  /** Called with how much is sent, from 0 to 1. */
  onProgress(progress: number): void;
}

/** Sends the bytes of a file to the address of its upload. */
export type Transfer = (url: string, blob: Blob, options: TransferOptions) => Promise<File>;

/** Uses `XMLHttpRequest` where it exists, because `fetch` does not report progress. */
export function createTransfer(given: typeof fetch | undefined): Transfer {
  const { XMLHttpRequest } = globalThis as { XMLHttpRequest?: XhrClass };
  if (!given && XMLHttpRequest) return transferWithXhr(XMLHttpRequest);
  return transferWithFetch(given ?? globalThis.fetch.bind(globalThis));
}

/** The part of `XMLHttpRequest` that is used. */
interface Xhr {
  readonly status: number;
  readonly responseText: string;
  readonly upload: {
    addEventListener(
      type: "progress" | "load",
      listener: (event: { loaded: number; total: number }) => void,
    ): void;
  };
  addEventListener(type: "load" | "error" | "abort", listener: () => void): void;
  open(method: string, url: string): void;
  send(body: Blob): void;
  abort(): void;
}

type XhrClass = new () => Xhr;

const transferWithXhr =
  (XhrClass: XhrClass): Transfer =>
  (url, blob, { timeoutMs, signal, onProgress }) =>
    new Promise((resolve, reject) => {
      const xhr = new XhrClass();
      const abort = () => xhr.abort();
      let timer = setTimeout(abort, timeoutMs);
      const restartTimer = (ms: number) => {
        clearTimeout(timer);
        timer = setTimeout(abort, ms);
      };
      const settle = (act: () => void) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", abort);
        act();
      };
      const fail = (what: string) => () => settle(() => reject(notReached(new Error(what))));
      xhr.upload.addEventListener("progress", ({ loaded, total }) => {
        restartTimer(timeoutMs);
        if (total > 0) onProgress(loaded / total);
      });
      xhr.upload.addEventListener("load", () => restartTimer(timeoutMs + PROCESSING_TIMEOUT_MS));
      xhr.addEventListener("load", () =>
        settle(() => resolve(readFile(parse(xhr.responseText), xhr.status))),
      );
      xhr.addEventListener("error", fail("the transfer broke off"));
      xhr.addEventListener("abort", fail("the transfer was aborted or timed out"));
      signal.addEventListener("abort", abort);
      xhr.open("PUT", url);
      xhr.send(blob);
    });

const transferWithFetch =
  (send: typeof fetch): Transfer =>
  async (url, blob, { timeoutMs, signal }) => {
    const transferMs = Math.ceil((blob.size / MIN_BYTES_PER_SECOND) * 1000);
    const timeout = AbortSignal.timeout(timeoutMs + PROCESSING_TIMEOUT_MS + transferMs);
    const request = { method: "PUT", body: blob, signal: AbortSignal.any([signal, timeout]) };
    const response = await send(url, request).catch((cause: unknown) => {
      throw notReached(cause);
    });
    // No JSON, or only a part of it: `readFile` rejects.
    return readFile(await response.json().catch(() => null), response.status);
  };

/** The file in a reply. Rejects with the error in it. */
async function readFile(body: unknown, status: number): Promise<File> {
  if (body === null && status === PAYLOAD_TOO_LARGE) {
    throw callError("payload_too_large", "a proxy of the service takes no files of this size");
  }
  return readReply(body, status) as File;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // No JSON: `readFile` rejects.
    return null;
  }
}
