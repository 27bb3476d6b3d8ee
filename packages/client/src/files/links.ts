import type { FileLinks } from "@parley/protocol";
import { callListener } from "../async/call-listener.ts";
import { callWithRetry } from "../async/retry.ts";
import type { Reachability } from "../connection/connectivity.ts";
import { isOutOfReach } from "../errors.ts";
import type { LinkCache, Operations } from "../types.ts";
import { Batches } from "./batches.ts";
import { RenewalTimer, renewalTime } from "./renewal.ts";

interface Known {
  link: FileLinks;
  renewAt: number;
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
  readonly #batches = new Batches((ids) => this.#load(ids));
  readonly #watchers = new Set<{ ids: readonly string[]; listener: () => void }>();
  readonly #timer = new RenewalTimer(() => this.refresh());

  constructor(options: LinksOptions) {
    this.#options = options;
  }

  async get(fileIds: readonly string[]): Promise<FileLinks[]> {
    const missing = fileIds.filter((id) => !this.peek(id));
    await Promise.all(missing.map((id) => this.#batches.load(id)));
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
      if (this.#watchers.size === 0) this.#timer.stop();
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
    this.#timer.stop();
    this.#known.clear();
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
    const changed = new Set<string>();
    for (const item of items) {
      const known = this.#known.get(item.file_id)?.link;
      const fetched = this.#resolved(item);
      const link = known?.url === fetched.url ? known : fetched;
      if (link !== known) changed.add(item.file_id);
      this.#known.set(item.file_id, { link, renewAt: renewalTime(item.expires_at) });
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
    this.#timer.restart(this.#watchedIds().flatMap((id) => this.#known.get(id)?.renewAt ?? []));
  }
}
