import { rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Limits } from "../config/limits.ts";
import {
  Failure,
  forbidden,
  notFound,
  rateLimited,
  suspended,
  unavailable,
} from "../rules/failure.ts";
import { publicFile } from "../rules/files.ts";
import { createFairQueue } from "../security/fair-queue.ts";
import type { Throttle } from "../security/throttle.ts";
import type { FileContent, FileRecord } from "../store/files.ts";
import type { Store } from "../store/store.ts";
import { type Blobs, previewOf } from "./blobs.ts";
import { deleteBlob } from "./cleanup.ts";
import { decodeInTurn } from "./decoding.ts";
import { detectType } from "./detect-type.ts";
import { cleanPicture, cleanProfilePicture, isPicture, notAPicture, pixelsOf } from "./images.ts";
import { durationOf } from "./media.ts";
import { receiveUpload } from "./receive-upload.ts";

/** A thread reads the duration of audio and video, so only a few are at once. */
const EXAMINED_AT_ONCE = 2;
/** Beyond it uploads are refused with `unavailable`. */
const MAX_WAITING = 200;

export interface UploadsOptions {
  readonly store: Pick<Store, "read" | "write">;
  readonly blobs: Blobs;
  readonly limits: Limits;
  /** Limits the pixels of the pictures of a person and their agents. */
  readonly pixels: Throttle;
}

/**
 * Returns a function that receives, examines and stores the bytes of an announced file. A file that is
 * ready is returned as it is. The signal is aborted when the client is gone: what then waits for its turn
 * is not examined any more.
 */
export function createUploads(options: UploadsOptions) {
  const { store, blobs, limits, pixels } = options;
  const slots = slotsPerPerson(limits.uploads_at_once);
  const full = () => unavailable("too many files are being examined", 2);
  const examining = createFairQueue({ running: EXAMINED_AT_ONCE, waiting: MAX_WAITING, full });

  /** The pixels of a picture, which count toward the limit of the person. */
  async function countPixels(key: string, path: string, signal: AbortSignal): Promise<number> {
    const cleaned = join(blobs.incoming, Bun.randomUUIDv7());
    const files = { cleaned, preview: cleaned, maxPixels: limits.image_pixels, maxBytes: 0 };
    // Not in the queue for decoding: whoever has waited there for the first time would wait again.
    const count = await examining(key, () => pixelsOf(path, files), signal);
    pixels.take(key, count);
    return count;
  }

  async function process(
    file: FileRecord,
    person: number,
    bytes: ReadableStream<Uint8Array> | null,
    signal: AbortSignal,
  ) {
    await using received = await receiveUpload(bytes, { folder: blobs.incoming, size: file.size });
    const type = await detectType(received.path);
    const key = `${person}`;
    const isProfilePicture = file.conversation_uuid === null;
    const examineFile = () => examine(received.path, { type, isProfilePicture }, options);
    await using examined = isPicture(type)
      ? await decodeInTurn(key, examineFile, signal, await countPixels(key, received.path, signal))
      : await examining(key, examineFile, signal);
    await announced(store, file.id);
    await putAll(blobs, examined);
    const { content } = examined;
    if (await store.write((tx) => tx.finishFile(file.id, content))) return;
    // The upload was cancelled, or another request has sent the same file meanwhile.
    await deleteBlob(blobs, content.blob);
  }

  return async (fileId: string, bytes: ReadableStream<Uint8Array> | null, signal: AbortSignal) => {
    const file = await announced(store, fileId);
    if (file.status === "ready") return publicFile(file);
    const person = await uploaderOf(store, file);
    using _slot = slots.take(person);
    try {
      await process(file, person, bytes, signal);
    } catch (error) {
      if (isRefusal(error)) await store.write((tx) => tx.failFile(fileId));
      throw error;
    }
    const [stored] = await store.read((tx) => tx.files([fileId]));
    if (!stored) throw notFound("file");
    return publicFile(stored);
  };
}

/** The file, if its owner may still send it. */
const announced = (store: Pick<Store, "read">, fileId: string): Promise<FileRecord> =>
  store.read(async (tx) => {
    const [file] = await tx.files([fileId]);
    if (!file || file.owner_state === "erased") throw notFound("file");
    if (file.owner_state === "suspended") throw suspended();
    // A picture of a person or a group belongs to no conversation.
    if (file.conversation_uuid === null) return file;
    const conversation = await tx.conversation(file.conversation_uuid, file.owner_id);
    if (!conversation?.joined) throw forbidden("you have left this conversation");
    return file;
  });

/** The person who uploads a file, or whose agent does. */
const uploaderOf = (store: Pick<Store, "read">, { owner_id }: FileRecord): Promise<number> =>
  store.read(async (tx) => (await tx.agent(owner_id))?.owner.id ?? owner_id);

/** What is known of received bytes, and the local files to store of them. Disposing it removes these. */
interface Examined extends AsyncDisposable {
  readonly content: FileContent;
  /** Paths by the names of the objects. */
  readonly objects: readonly (readonly [name: string, path: string])[];
}

/** Examines received bytes: a picture loses its metadata and gets a preview. */
async function examine(
  path: string,
  { type, isProfilePicture }: { type: string; isProfilePicture: boolean },
  { blobs, limits }: UploadsOptions,
): Promise<Examined> {
  const blob = Bun.randomUUIDv7();
  const none = { width: null, height: null, duration_ms: null, placeholder: null };
  if (!isPicture(type)) {
    if (isProfilePicture) throw notAPicture();
    const { size } = await stat(path);
    const content = { ...none, blob, type, size, duration_ms: await durationOf(path, type) };
    return { content, objects: [[blob, path]], [Symbol.asyncDispose]: async () => {} };
  }
  const cleaned = join(blobs.incoming, blob);
  const preview = join(blobs.incoming, previewOf(blob));
  await using files = new AsyncDisposableStack();
  for (const each of [cleaned, preview]) files.defer(() => rm(each, { force: true }));
  const clean = isProfilePicture ? cleanProfilePicture : cleanPicture;
  const { image_pixels: maxPixels, file_bytes: maxBytes } = limits;
  const picture = await clean(path, { cleaned, preview, maxPixels, maxBytes });
  const { size } = await stat(cleaned);
  const kept = files.move();
  return {
    content: { ...none, ...picture, blob, size },
    objects: [
      [previewOf(blob), preview],
      [blob, cleaned],
    ],
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/** Stores all objects, or none of them. */
async function putAll(blobs: Blobs, { content, objects }: Examined): Promise<void> {
  try {
    for (const [name, path] of objects) await blobs.put(name, path);
  } catch (error) {
    // If the storage is unavailable, maintenance deletes them later.
    void deleteBlob(blobs, content.blob).catch(() => {});
    throw error;
  }
}

/** Whether the bytes were the reason, so that the same bytes fail again. */
const isRefusal = (error: unknown) =>
  error instanceof Failure && ["payload_too_large", "unsupported_media_type"].includes(error.code);

/** Limits how many uploads of a person and their agents run at the same time on this node. */
function slotsPerPerson(most: number) {
  const running = new Map<number, number>();
  const add = (person: number, change: number) => {
    const count = (running.get(person) ?? 0) + change;
    if (count === 0) running.delete(person);
    else running.set(person, count);
  };
  return {
    take(person: number): Disposable {
      if ((running.get(person) ?? 0) >= most) throw rateLimited(1, `${most} uploads at a time`);
      add(person, 1);
      return { [Symbol.dispose]: () => add(person, -1) };
    },
  };
}
