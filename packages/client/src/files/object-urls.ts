/** How many object URLs are kept of files that are sent, and of how many bytes in total. */
const MAX_URLS = 100;
const MAX_BYTES = 100 * 1024 * 1024;

/**
 * Types that a browser shows without running scripts. Whoever opens the object URL of a page or an
 * SVG would run its scripts in the origin of the client.
 */
const SHOWN = /^(image\/(?!svg)|audio\/|video\/)/;

interface Kept {
  fileId: string;
  url: string;
  size: number;
}

/** Object URLs of local files, for previews. Those of sent files are kept for a while. */
export class ObjectUrls {
  /** Called with ids of files whose URL is about to be revoked. */
  readonly #onRevoked: (fileIds: readonly string[]) => void;
  #kept: Kept[] = [];

  constructor(onRevoked: (fileIds: readonly string[]) => void) {
    this.#onRevoked = onRevoked;
  }

  /** Returns undefined for types that are not previewed, and where there are no object URLs. */
  create(blob: Blob): string | undefined {
    if (!SHOWN.test(blob.type) || typeof URL.createObjectURL !== "function") return undefined;
    return URL.createObjectURL(blob);
  }

  /** Keeps the URL of a file that is uploaded, and revokes the oldest ones if there are too many. */
  keep(kept: Kept): void {
    // A file that is uploaded again has the same URL and another id.
    this.#kept = [...this.#kept.filter(({ url }) => url !== kept.url), kept];
    let bytes = this.#kept.reduce((sum, { size }) => sum + size, 0);
    let count = 0;
    for (const { size } of this.#kept) {
      if (this.#kept.length - count <= MAX_URLS && bytes <= MAX_BYTES) break;
      bytes -= size;
      count++;
    }
    this.#drop(this.#kept.slice(0, count));
  }

  revoke(urls: readonly (string | undefined)[]): void {
    this.#drop(this.#kept.filter(({ url }) => urls.includes(url)));
    for (const url of urls) if (url !== undefined) URL.revokeObjectURL(url);
  }

  /** Revokes those that are not kept. */
  revokeOthers(urls: readonly (string | undefined)[]): void {
    const kept = new Set(this.#kept.map(({ url }) => url));
    this.revoke(urls.filter((url) => url !== undefined && !kept.has(url)));
  }

  clear(): void {
    this.#drop(this.#kept);
  }

  #drop(dropped: readonly Kept[]): void {
    if (dropped.length === 0) return;
    this.#kept = this.#kept.filter((each) => !dropped.includes(each));
    this.#onRevoked(dropped.map(({ fileId }) => fileId));
    for (const { url } of dropped) URL.revokeObjectURL(url);
  }
}
