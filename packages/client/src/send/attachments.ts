import type { Message } from "@parley/protocol";
import { untilAborted } from "../async/abort.ts";
import { acquireTabLock } from "../async/tab-lock.ts";
import { callError, describeError, FileFailure, isCallError, isUnauthorized } from "../errors.ts";
import { blobKey, createLocalFile } from "../files/local-file.ts";
import { ObjectUrls } from "../files/object-urls.ts";
import type { Uploader } from "../files/uploader.ts";
import type { State } from "../model/state.ts";
import type { Store } from "../model/store.ts";
import type { BlobStorage, LocalFile, LocalMessage } from "../types.ts";

/** Why a message fails whose files are not stored here any more. */
const FILES_GONE = "The file is no longer available here. Discard the message and attach it again.";
/** Why a message fails whose files cannot be read at the moment. */
const FILES_UNREADABLE = "The file cannot be read at the moment.";

/** The most files that the service takes in a message. */
const MAX_FILES = 10;
const TOO_MANY_FILES = `A message can have ${MAX_FILES} files.`;

type StoredBlob = Blob | null | undefined;

/** The local files of an unsent message. */
interface Attached {
  id: string;
  chatId: string;
  /** The bytes of each file; null if they are gone, undefined if they could not be read. */
  blobs: Promise<readonly StoredBlob[]>;
  /** The object URL of each file that has one. */
  urls: (string | undefined)[];
  /** The uploads that are under way, by index. */
  running: Map<number, Promise<string>>;
  abort: AbortController;
  /** The lock that keeps other tabs from uploading the same files; null while no upload runs. */
  lock: { acquired: Promise<void>; release: AbortController } | null;
  /** Settles when the bytes are stored. */
  stored: Promise<unknown>;
}

/** Uploads the files of unsent messages, and keeps their bytes until the messages are sent. */
export class Attachments {
  readonly #store: Store;
  readonly #uploader: Uploader;
  readonly #storage: BlobStorage | undefined;
  readonly #attached = new Map<string, Attached>();
  readonly #objectUrls: ObjectUrls;

  constructor(store: Store, uploader: Uploader, storage: BlobStorage | undefined) {
    this.#store = store;
    this.#uploader = uploader;
    this.#storage = storage;
    this.#objectUrls = new ObjectUrls((fileIds) =>
      store.dispatch({ type: "localUrlsRevoked", fileIds }),
    );
    store.onChange((state, before) => {
      if (state.outbox !== before.outbox) this.#matchOutbox(state);
    });
    this.#matchOutbox(store.state);
  }

  /** Takes the files of a message that is about to be queued, and returns how they are shown. */
  add(id: string, chatId: string, blobs: readonly Blob[]): LocalFile[] {
    const stored = blobs.map((blob, index) => this.#storage?.set(blobKey(id, index), blob));
    const attached = createAttached(id, chatId, Promise.resolve(blobs));
    // A message whose files cannot be stored is sent all the same. It does not survive a reload.
    attached.stored = Promise.allSettled(stored);
    attached.urls = blobs.map((blob) => this.#objectUrls.create(blob));
    this.#attached.set(id, attached);
    return blobs.map((blob, index) => ({
      ...createLocalFile(id, blob, index),
      progress: 0,
      ...urlField(attached.urls[index]),
    }));
  }

  /**
   * Uploads the files of a message that are not uploaded yet, and resolves with the ids of all. An
   * error that is no `CallError` is final.
   */
  upload({ id, files }: LocalMessage): Promise<string[]> {
    const attached = this.#attached.get(id);
    if (!attached) return Promise.reject(new Error(FILES_GONE));
    if (files.length > MAX_FILES) return Promise.reject(new Error(TOO_MANY_FILES));
    return Promise.all(files.map((_, index) => this.#uploadOnce(attached, index))).catch(
      (error) => {
        unlock(attached);
        throw error;
      },
    );
  }

  /** The service has accepted a message. Another tab may have sent it with uploads of its own. */
  cancelUnused({ files: unsent }: LocalMessage, { files: sent }: Message): void {
    const used = new Set(sent.map(({ id }) => id));
    for (const { id, status } of unsent) {
      if (status === "ready" && !used.has(id)) this.#uploader.cancel(id);
    }
  }

  /** The service no longer has the uploads of a message: they are made again. */
  forgetUploads({ id, files }: LocalMessage): void {
    const attached = this.#attached.get(id);
    if (!attached) return;
    for (const [index, file] of files.entries()) {
      const id = blobKey(attached.id, index);
      this.#show(attached, index, { ...file, id, status: "waiting", progress: 0 });
    }
  }

  /** Cancels the uploads of a message that is about to be dropped. */
  discard({ id, files }: LocalMessage): void {
    for (const file of files) if (file.status === "ready") this.#uploader.cancel(file.id);
    this.#objectUrls.revoke(this.#attached.get(id)?.urls ?? []);
  }

  /** The account has signed out. The bytes stay in the storage, as unsent messages do. */
  reset(): void {
    for (const attached of this.#attached.values()) {
      attached.abort.abort();
      unlock(attached);
      this.#objectUrls.revoke(attached.urls);
    }
    this.#attached.clear();
    this.#objectUrls.clear();
  }

  /** Loads the files of restored messages, and releases those of messages that are sent or gone. */
  #matchOutbox({ outbox }: State): void {
    const unsent = new Map<string, LocalMessage>();
    for (const entry of Object.values(outbox).flat()) {
      if (entry.delivery !== "sent" && entry.files.length > 0) unsent.set(entry.id, entry);
    }
    for (const [id, attached] of this.#attached) if (!unsent.has(id)) this.#release(attached);
    for (const [id, entry] of unsent) if (!this.#attached.has(id)) this.#restore(entry);
  }

  #restore({ id, conversation_id, files }: LocalMessage): void {
    const blobs = Promise.all(files.map((_, index) => this.#load(id, index)));
    const attached = createAttached(id, conversation_id, blobs);
    this.#attached.set(id, attached);
    void blobs.then((loaded) => this.#handleLoaded(attached, loaded));
  }

  async #load(id: string, index: number): Promise<StoredBlob> {
    try {
      return (await this.#storage?.get(blobKey(id, index))) ?? null;
    } catch {
      // The bytes may be there nevertheless: the upload reads them again.
      return undefined;
    }
  }

  #handleLoaded(attached: Attached, blobs: readonly StoredBlob[]): void {
    const { id: clientMsgId, chatId } = attached;
    for (const [index, blob] of blobs.entries()) {
      const file = this.#fileOf(attached, index);
      if (!file) return;
      if (blob) {
        const url = this.#objectUrls.create(blob);
        attached.urls[index] = url;
        this.#show(attached, index, { ...file, ...urlField(url) });
        if (url && file.status === "ready") {
          this.#objectUrls.keep({ fileId: file.id, url, size: blob.size });
        }
      } else if (blob === null && file.status !== "ready") {
        this.#show(attached, index, { ...file, error: FILES_GONE });
        const failure = `${file.name}: ${FILES_GONE}`;
        this.#store.dispatch({ type: "failed", chatId, clientMsgId, failure, isRejected: true });
      }
    }
  }

  #release(attached: Attached): void {
    const { id, abort, blobs, urls, stored } = attached;
    this.#attached.delete(id);
    abort.abort(new Error("the message was sent or discarded"));
    unlock(attached);
    this.#objectUrls.revokeOthers(urls);
    const remove = async () => {
      await stored;
      for (const index of (await blobs).keys()) await this.#storage?.delete(blobKey(id, index));
    };
    // What could not be deleted takes room in the storage and does no other harm.
    if (this.#storage) remove().catch(() => {});
  }

  #uploadOnce(attached: Attached, index: number): Promise<string> {
    const { running } = attached;
    const known = running.get(index);
    if (known) return known;
    const upload = this.#upload(attached, index).finally(() => running.delete(index));
    running.set(index, upload);
    return upload;
  }

  async #upload(attached: Attached, index: number): Promise<string> {
    const { id, chatId, blobs, urls, abort } = attached;
    const loaded = (await blobs)[index];
    const blob = loaded === undefined ? await this.#load(id, index) : loaded;
    const file = this.#fileOf(attached, index);
    abort.signal.throwIfAborted();
    if (file?.status === "ready") return file.id;
    if (!file || blob === null) throw new FileFailure(file?.name ?? "", FILES_GONE);
    if (!blob) {
      const cause = callError("unavailable", FILES_UNREADABLE);
      throw new FileFailure(file.name, FILES_UNREADABLE, cause);
    }
    await untilAborted(lock(attached), abort.signal);
    try {
      const uploaded = await this.#uploader.upload(chatId, blob, {
        name: file.name,
        signal: abort.signal,
        maxFailures: Number.POSITIVE_INFINITY,
        onProgress: (progress) => this.#showProgress(attached, index, progress),
      });
      const url = urls[index];
      this.#show(attached, index, { ...uploaded, progress: 1, ...urlField(url) });
      if (url) this.#objectUrls.keep({ fileId: uploaded.id, url, size: blob.size });
      return uploaded.id;
    } catch (error) {
      if (abort.signal.aborted || !isRefusal(error)) throw error;
      this.#show(attached, index, { ...file, error: describeError(error) });
      throw new FileFailure(file.name, describeError(error), error);
    }
  }

  #showProgress(attached: Attached, index: number, exact: number): void {
    const file = this.#fileOf(attached, index);
    const progress = Math.floor(exact * 100) / 100;
    if (file && file.progress !== progress) this.#show(attached, index, { ...file, progress });
  }

  #show({ chatId, id: clientMsgId }: Attached, index: number, file: LocalFile): void {
    this.#store.dispatch({ type: "fileChanged", chatId, clientMsgId, index, file });
  }

  #fileOf({ chatId, id }: Attached, index: number): LocalFile | undefined {
    return this.#store.state.outbox[chatId]?.find((each) => each.id === id)?.files[index];
  }
}

const createAttached = (id: string, chatId: string, blobs: Attached["blobs"]): Attached => ({
  id,
  chatId,
  blobs,
  urls: [],
  running: new Map(),
  abort: new AbortController(),
  lock: null,
  stored: Promise.resolve(),
});

/** Resolves when no other tab uploads the files of the message. */
function lock(attached: Attached): Promise<void> {
  if (!attached.lock) {
    const release = new AbortController();
    const acquired = acquireTabLock(`parley:upload:${attached.id}`, release.signal);
    attached.lock = { acquired, release };
  }
  return attached.lock.acquired;
}

function unlock(attached: Attached): void {
  attached.lock?.release.abort();
  attached.lock = null;
}

const urlField = (url: string | undefined) => (url === undefined ? {} : { url });

/** Whether the same upload would fail again. The uploader has repeated it as long as that may help. */
const isRefusal = (error: unknown): boolean =>
  !isUnauthorized(error) && !(isCallError(error) && error.code === "unavailable");
