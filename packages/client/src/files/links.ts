import type { FileLinks } from "@parley/protocol";
import { callListener } from "../async/call-listener.ts";
import { callWithRetry, pause } from "../async/retry.ts";
import type { Reachability } from "../connection/connectivity.ts";
import { isOutOfReach } from "../errors.ts";
import type { LinkCache, Operations } from "../types.ts";

/** The most files that one call takes. */
const MAX_IDS_PER_CALL = 100;
/** The service makes links that are valid for at least this long, whatever the clock here says. */
const MIN_LIFETIME_MS = 10 * 60 * 1000;
const MAX_LIFETIME_MS = 60 * 60 * 1000;
/** A link is renewed this long before it expires, so that what loads then has time. */
const RENEW_BEFORE_MS = 2 * 60 * 1000;

interface Known {
  link: FileLinks;
  renewAt: number;
}

/** Files that are asked for together. */
interface Batch {
  ids: Set<string>;
  done: Promise<void>;
}

export interface LinksOptions {
  api: Pick<Operations, "getFileLinks">;
  reachability: Reachability;
  /** The absolute address of a link. */
  resolve(link: string): string;
}

/** Keeps links to files, fetches them in batches, and renews those that are watched. */
export class Links implements LinkCache {
  readonly #options: LinksOptions;
  readonly #known = new Map<string, Known>();
  /** Batches that are not answered yet. */
  readonly #running = new Set<Batch>();
  #next: Batch | null = null;
  readonly #watchers = new Set<{ ids: readonly string[]; listener: () => void }>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: LinksOptions) {
    this.#options = options;
  }

  async get(fileIds: readonly string[]): Promise<FileLinks[]> {
    const missing = fileIds.filter((id) => !this.peek(id));
    await Promise.all(missing.map((id) => this.#fetch(id)));
    return fileIds.map((id) => this.peek(id)).filter((link) => link !== undefined);
  }

  peek(fileId: string): FileLinks | undefined {
    const known = this.#known.get(fileId);
    return known && known.renewAt > Date.now() ? known.link : undefined;
  }

  renew(fileIds: readonly string[]): Promise<FileLinks[]> {
    for (const id of fileIds) this.#known.delete(id);
    return this.get(fileIds);
  }

  watch(fileIds: readonly string[], listener: () => void): () => void {
    const watcher = { ids: [...fileIds], listener };
    this.#watchers.add(watcher);
    this.refresh();
    return () => {
      this.#watchers.delete(watcher);
      if (this.#watchers.size === 0) this.#stopTimer();
    };
  }

  /** Fetches the watched links that are missing or expire soon. */
  refresh(): void {
    const missing = this.#watchedIds().filter((id) => !this.peek(id));
    // If it fails, the next connection asks again.
    if (missing.length > 0) this.get(missing).catch(() => {});
    else this.#restartTimer();
  }

  /** Forgets all links: the account has signed out. */
  clear(): void {
    this.#stopTimer();
    this.#known.clear();
  }

  /** Resolves when the link has been fetched, if there is one. */
  #fetch(id: string): Promise<void> {
    for (const batch of this.#running) if (batch.ids.has(id)) return batch.done;
    if (!this.#next || this.#next.ids.size >= MAX_IDS_PER_CALL) this.#next = this.#createBatch();
    this.#next.ids.add(id);
    return this.#next.done;
  }

  /** A batch that is sent after the current task, so that others can join it. */
  #createBatch(): Batch {
    const ids = new Set<string>();
    const done = pause(0).then(() => {
      if (this.#next === batch) this.#next = null;
      return this.#load([...ids]);
    });
    const batch: Batch = { ids, done };
    this.#running.add(batch);
    const end = () => void this.#running.delete(batch);
    done.then(end, end);
    return batch;
  }

  async #load(file_ids: string[]): Promise<void> {
    const { api, reachability } = this.#options;
    try {
      const { items } = await callWithRetry(reachability, () => api.getFileLinks({ file_ids }));
      this.#add(items);
    } catch (error) {
      if (!isOutOfReach(error)) throw error;
      // One file that is out of reach makes the whole call fail.
      if (file_ids.length === 1) return;
      const middle = file_ids.length >> 1;
      await Promise.all(
        [file_ids.slice(0, middle), file_ids.slice(middle)].map((half) => this.#load(half)),
      );
    }
  }

  #add(items: readonly FileLinks[]): void {
    const now = Date.now();
    const changed = new Set<string>();
    for (const item of items) {
      const lifetimeMs = Math.min(
        Math.max(Date.parse(item.expires_at) - now, MIN_LIFETIME_MS),
        MAX_LIFETIME_MS,
      );
      const known = this.#known.get(item.file_id)?.link;
      const fetched = this.#resolved(item);
      const link = known?.url === fetched.url ? known : fetched;
      if (link !== known) changed.add(item.file_id);
      this.#known.set(item.file_id, { link, renewAt: now + lifetimeMs - RENEW_BEFORE_MS });
    }
    for (const { ids, listener } of [...this.#watchers]) {
      if (ids.some((id) => changed.has(id))) callListener(listener);
    }
    this.#restartTimer();
  }

  #resolved(item: FileLinks): FileLinks {
    const { resolve } = this.#options;
    const preview_url = item.preview_url === null ? null : resolve(item.preview_url);
    return { ...item, url: resolve(item.url), preview_url };
  }

  #watchedIds(): string[] {
    return [...new Set([...this.#watchers].flatMap(({ ids }) => ids))];
  }

  #restartTimer(): void {
    this.#stopTimer();
    const times = this.#watchedIds().flatMap((id) => this.#known.get(id)?.renewAt ?? []);
    if (times.length === 0) return;
    const delayMs = Math.max(1000, Math.min(...times) - Date.now());
    this.#timer = setTimeout(() => this.refresh(), delayMs);
    // A Node or Bun process may exit while the timer runs.
    if (typeof this.#timer === "object") (this.#timer as { unref?(): void }).unref?.();
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
