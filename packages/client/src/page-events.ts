interface Target {
  addEventListener(type: string, listener: () => void): void;
  removeEventListener(type: string, listener: () => void): void;
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
