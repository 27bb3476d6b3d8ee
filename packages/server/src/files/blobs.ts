/** A part of an object: from `start` up to and excluding `end`. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

export interface Blob {
  readonly size: number;
  /** Sending the first 25 MiB of the stream does not wait for a disk. */
  stream(range?: ByteRange): Promise<ReadableStream<Uint8Array>>;
}

export interface BlobEntry {
  readonly name: string;
  readonly size: number;
  readonly modifiedAt: number;
}

/**
 * Where the bytes of files are kept. Objects are immutable, and their names consist of letters,
 * digits, dots and hyphens. Every method throws `Unavailable` while the storage cannot be reached.
 */
export interface Blobs {
  /** A folder on the local disk for files that are given to `put`. */
  readonly incoming: string;
  /**
   * Stores a local file and removes it. Resolves once the object is durable. Storing an object again
   * replaces it: nobody sees a part of either.
   */
  put(name: string, path: string): Promise<void>;
  /** Null if there is no such object. */
  open(name: string): Promise<Blob | null>;
  /** Does nothing if there is no such object. */
  delete(name: string): Promise<void>;
  /** All objects, in no particular order. */
  list(): AsyncIterable<BlobEntry>;
}

/** The name of the small version of a picture. */
export const previewOf = (blob: string) => `${blob}.preview`;
