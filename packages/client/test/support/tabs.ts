import type { Person } from "@parley/testkit/client.ts";
import type { ClientOptions, KeyValueStorage } from "../../src/index.ts";
import { clientOf, memoryStorage, type TestClient } from "./clients.ts";

type StorageListener = (change: {
  storageArea: unknown;
  key: string;
  oldValue: string | null;
  newValue: string | null;
}) => void;

/** Tabs of one browser: they share a storage, and each gets an event after another one has changed it. */
export class Tabs {
  readonly #shared = memoryStorage();
  readonly #listeners = new Map<KeyValueStorage, StorageListener[]>();
  /** How many characters the storage takes. */
  room = Number.POSITIVE_INFINITY;

  get items(): ReadonlyMap<string, string> {
    return this.#shared.items;
  }

  /** How many characters are stored. */
  get used(): number {
    return this.items.values().reduce((sum, value) => sum + value.length, 0);
  }

  /** Opens a tab with a client that is connected and up to date. */
  async open(person: Person, url: string, options: ClientOptions = {}): Promise<TestClient> {
    const storage = this.#storageOfTab();
    const listeners: StorageListener[] = [];
    this.#listeners.set(storage, listeners);
    const page = globalThis as { window?: unknown };
    page.window = {
      addEventListener(type: string, listener: StorageListener) {
        if (type === "storage") listeners.push(listener);
      },
    };
    const client = clientOf(person, url, { ...options, storage });
    delete page.window;
    await client.connect();
    return client;
  }

  #storageOfTab(): KeyValueStorage {
    const shared = this.#shared;
    const change = (key: string, value: string | null) => {
      const before = shared.getItem(key);
      if (value === before) return;
      if (value === null) shared.removeItem(key);
      else shared.setItem(key, value);
      for (const [other, listeners] of this.#listeners) {
        if (other === storage) continue;
        const event = { storageArea: other, key, oldValue: before, newValue: value };
        for (const listener of listeners) queueMicrotask(() => listener(event));
      }
    };
    const storage: KeyValueStorage = {
      getItem: shared.getItem,
      setItem: (key, value) => {
        const replaced = shared.getItem(key)?.length ?? 0;
        if (this.used - replaced + value.length > this.room)
          throw new DOMException("full", "QuotaExceededError");
        change(key, value);
      },
      removeItem: (key) => change(key, null),
    };
    return storage;
  }
}

/** Gives the process the Web Locks that tabs of a browser share. */
export function webLocks(): Disposable {
  const last = new Map<string, Promise<unknown>>();
  const request = (name: string, { signal }: { signal: AbortSignal }, task: () => unknown) => {
    const before = last.get(name) ?? Promise.resolve();
    const turn = before.then(() => (signal.aborted ? undefined : task()));
    last.set(name, turn);
    return turn;
  };
  Object.defineProperty(navigator, "locks", { value: { request }, configurable: true });
  return {
    [Symbol.dispose]: () => {
      Object.defineProperty(navigator, "locks", { value: undefined, configurable: true });
    },
  };
}
