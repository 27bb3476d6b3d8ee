import type { BlobStorage } from "../types.ts";

const STORE = "blobs";

/** The part of IndexedDB that is used. */
interface Request<Result> {
  readonly result: Result;
  readonly error: unknown;
  onsuccess: (() => void) | null;
  onerror: (() => void) | null;
}

interface OpenRequest extends Request<Database> {
  onupgradeneeded: (() => void) | null;
}

interface Database {
  createObjectStore(name: string): unknown;
  transaction(name: string, mode: "readonly" | "readwrite"): Transaction;
}

interface Transaction {
  readonly error: unknown;
  oncomplete: (() => void) | null;
  onabort: (() => void) | null;
  objectStore(name: string): Objects;
}

interface Objects {
  get(key: string): Request<Blob | undefined>;
  put(value: Blob, key: string): Request<unknown>;
  delete(key: string): Request<unknown>;
}

/** Stores the files of unsent messages in the browser, in an IndexedDB database of this name. */
export function indexedDbBlobs(name = "parley-files"): BlobStorage {
  let database: Promise<Database> | null = null;

  async function begin(mode: "readonly" | "readwrite"): Promise<Transaction> {
    database ??= openDatabase(name);
    const used = database;
    try {
      return (await used).transaction(STORE, mode);
    } catch (error) {
      // The next call opens it again.
      if (database === used) database = null;
      throw error;
    }
  }

  async function run<Result>(
    mode: "readonly" | "readwrite",
    act: (objects: Objects) => Request<Result>,
  ): Promise<Result> {
    // Browsers may close a database at any time: it is opened again, once.
    const transaction = await begin(mode).catch(() => begin(mode));
    return completed(transaction, act(transaction.objectStore(STORE)));
  }

  return {
    get: (key) => run("readonly", (objects) => objects.get(key)),
    set: async (key, blob) => void (await run("readwrite", (objects) => objects.put(blob, key))),
    delete: async (key) => void (await run("readwrite", (objects) => objects.delete(key))),
  };
}

async function openDatabase(name: string): Promise<Database> {
  const { indexedDB } = globalThis as { indexedDB?: { open(name: string): OpenRequest } };
  if (!indexedDB) throw new Error("There is no IndexedDB here.");
  const opening = indexedDB.open(name);
  opening.onupgradeneeded = () => void opening.result.createObjectStore(STORE);
  return settled(opening);
}

const settled = <Result>(request: Request<Result>): Promise<Result> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

/** A request that succeeds is undone if its transaction cannot be committed, such as without space. */
const completed = <Result>(transaction: Transaction, request: Request<Result>): Promise<Result> =>
  new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve(request.result);
    transaction.onabort = () =>
      reject(transaction.error ?? new Error("The transaction was aborted."));
  });
