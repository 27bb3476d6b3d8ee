import type { File } from "@parley/protocol";
import { untilAborted } from "../async/abort.ts";
import { createLimit } from "../async/limit.ts";
import { pause, retryDelayMs } from "../async/retry.ts";
import type { Reachability } from "../connection/connectivity.ts";
import { callError, isCallError, mayRetry } from "../errors.ts";
import type { Operations, UploadOptions } from "../types.ts";
import { nameOf } from "./name.ts";
import type { Transfer } from "./transfer.ts";

/** The service takes four uploads of a person at a time: one is left for other devices. */
const MAX_UPLOADS = 3;
const MAX_FAILURES = 6;
/** A longer rate limit, such as that of a day, is reported and not waited out. */
const MAX_RETRY_AFTER_S = 60;
/** The address of an upload is valid for an hour. */
const ADDRESS_MS = 50 * 60 * 1000;

export interface UploaderOptions {
  api: Pick<Operations, "createUpload" | "cancelUpload">;
  reachability: Reachability;
  transfer: Transfer;
  timeoutMs: number;
  /** The absolute address of a link. */
  resolve(link: string): string;
}

/** The options of one upload. */
interface Upload extends Required<UploadOptions> {
  /** Null: a picture of an account or a group. */
  chatId: string | null;
  blob: Blob;
  /** After how many failures to reach the service it fails. */
  maxFailures: number;
}

interface Announced {
  fileId: string;
  url: string;
  at: number;
}

/** Uploads files: announces each once, and sends its bytes until they have arrived. */
export class Uploader {
  readonly #options: UploaderOptions;
  readonly #limited = createLimit(MAX_UPLOADS);

  constructor(options: UploaderOptions) {
    this.#options = options;
  }

  /** Rejects as soon as the signal is aborted. An upload that fails or is aborted is cancelled. */
  upload(
    chatId: string | null,
    blob: Blob,
    options: UploadOptions & { maxFailures?: number } = {},
  ): Promise<File> {
    const upload: Upload = {
      chatId,
      blob,
      name: options.name ?? nameOf(blob),
      onProgress: (progress) => options.onProgress?.(progress),
      signal: options.signal ?? new AbortController().signal,
      maxFailures: options.maxFailures ?? MAX_FAILURES,
    };
    const { signal } = upload;
    return untilAborted(
      this.#limited(() => this.#run(upload), signal),
      signal,
    );
  }

  /** Deletes an upload that no message has. */
  cancel(fileId: string): void {
    // If the call fails, the service deletes it after a day.
    this.#options.api.cancelUpload({ file_id: fileId }).catch(() => {});
  }

  async #run(upload: Upload): Promise<File> {
    const { reachability } = this.#options;
    const { signal } = upload;
    let announced: Announced | null = null;
    try {
      for (let failures = 0; ; failures++) {
        await untilAborted(reachability.whenReachable(), signal);
        try {
          announced = await this.#announce(upload, announced);
          return await this.#send(upload, announced);
        } catch (error) {
          signal.throwIfAborted();
          if (!isRepeatable(error, failures, upload.maxFailures)) throw error;
          await checkReadable(upload.blob);
          await pause(retryDelayMs(failures, error), signal);
        }
      }
    } catch (error) {
      if (announced) this.cancel(announced.fileId);
      throw error;
    }
  }

  /** Announces the file, unless that was done and its address is still valid. */
  async #announce({ chatId, blob, name }: Upload, known: Announced | null): Promise<Announced> {
    if (known && Date.now() - known.at < ADDRESS_MS) return known;
    if (known) this.cancel(known.fileId);
    const { api, resolve } = this.#options;
    const { file, upload_url } = await api.createUpload({
      ...(chatId === null ? { purpose: "picture" } : { chat_id: chatId }),
      name,
      size: blob.size,
      ...(blob.type !== "" && { type: blob.type.slice(0, 255) }),
    });
    return { fileId: file.id, url: resolve(upload_url), at: Date.now() };
  }

  async #send({ blob, signal, onProgress }: Upload, { url }: Announced): Promise<File> {
    signal.throwIfAborted();
    const { transfer, timeoutMs } = this.#options;
    onProgress(0);
    const file = await transfer(url, blob, { timeoutMs, signal, onProgress });
    signal.throwIfAborted();
    onProgress(1);
    return file;
  }
}

/**
 * Throws if the bytes cannot be read: a file that a person has chosen may be changed or deleted on
 * the disk. To a transfer that looks like a lost connection.
 */
async function checkReadable(blob: Blob): Promise<void> {
  try {
    await blob.slice(0, 1).arrayBuffer();
  } catch (cause) {
    throw callError("bad_request", "the file was changed or deleted, attach it again", { cause });
  }
}

function isRepeatable(error: unknown, failures: number, maxFailures: number): boolean {
  if (!isCallError(error) || !mayRetry(error)) return false;
  if (error.code === "rate_limited") return (error.retryAfter ?? 0) <= MAX_RETRY_AFTER_S;
  return failures + 1 < (error.code === "unavailable" ? maxFailures : MAX_FAILURES);
}
