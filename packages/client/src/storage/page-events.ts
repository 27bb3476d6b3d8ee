import type { KeyValueStorage } from "../types.ts";

interface Target {
  addEventListener<Event>(type: string, listener: (event: Event) => void): void;
  removeEventListener<Event>(type: string, listener: (event: Event) => void): void;
}

/** The `StorageEvent` of a browser. Its key is null if the whole storage was cleared. */
interface StorageChange {
  storageArea: unknown;
  key: string | null;
  oldValue: string | null;
  newValue: string | null;
}

/** The globals of a browser; elsewhere they are missing. */
interface BrowserGlobals {
  window?: Target;
  document?: Target & { visibilityState: string };
}

/** Calls the listener when the page is hidden: the browser may end it at any moment. */
export function onPageHide(listener: () => void): void {
  const { window, document } = globalThis as unknown as BrowserGlobals;
  window?.addEventListener?.("pagehide", listener);
  document?.addEventListener?.("visibilitychange", () => {
    if (document.visibilityState === "hidden") listener();
  });
}

/** Calls the listener when another tab has changed a value of the storage that both share. */
export function onStorageChange(
  storage: KeyValueStorage,
  listener: (key: string, before: string | null, after: string | null) => void,
): void {
  const { window } = globalThis as unknown as BrowserGlobals;
  window?.addEventListener?.("storage", (change: StorageChange) => {
    const { storageArea, key, oldValue, newValue } = change;
    if (storageArea === storage && key !== null) listener(key, oldValue, newValue);
  });
}

/**
 * Calls `resume` when the network is back or the tab is shown again, and `offline` when the network
 * is lost. Returns a function that unsubscribes.
 */
export function onNetworkChange(resume: () => void, offline: () => void): () => void {
  const { window, document } = globalThis as unknown as BrowserGlobals;
  const onVisibilityChange = () => {
    if (document?.visibilityState === "visible") resume();
  };
  window?.addEventListener?.("online", resume);
  window?.addEventListener?.("offline", offline);
  document?.addEventListener?.("visibilitychange", onVisibilityChange);
  return () => {
    window?.removeEventListener?.("online", resume);
    window?.removeEventListener?.("offline", offline);
    document?.removeEventListener?.("visibilitychange", onVisibilityChange);
  };
}
