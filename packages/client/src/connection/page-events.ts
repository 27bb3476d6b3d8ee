interface Target {
  addEventListener(type: string, listener: () => void): void;
  removeEventListener(type: string, listener: () => void): void;
}

interface Page {
  window?: Target;
  document?: Target & { visibilityState: string };
}

/** Calls when the page goes out of sight, and may end any moment. */
export function onHide(hide: () => void): void {
  const { window, document } = globalThis as unknown as Page;
  window?.addEventListener?.("pagehide", hide);
  document?.addEventListener?.("visibilitychange", () => {
    if (document.visibilityState === "hidden") hide();
  });
}

/**
 * Calls when the network or the tab comes back, and when the network goes, where there are such
 * things; returns how to stop.
 */
export function onWake(wake: () => void, lose: () => void): () => void {
  const { window, document } = globalThis as unknown as Page;
  const shown = () => {
    if (document?.visibilityState === "visible") wake();
  };
  window?.addEventListener?.("online", wake);
  window?.addEventListener?.("offline", lose);
  document?.addEventListener?.("visibilitychange", shown);
  return () => {
    window?.removeEventListener?.("online", wake);
    window?.removeEventListener?.("offline", lose);
    document?.removeEventListener?.("visibilitychange", shown);
  };
}
