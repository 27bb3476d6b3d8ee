/** A lock that is held by every tab at which the person is looking. */
const LOCK = "parley.watching";

/** Missing if the page was loaded without TLS. */
const locks = (): LockManager | undefined => navigator.locks;

const isThisWatched = () => document.visibilityState === "visible" && document.hasFocus();

/** Whether the person is looking at this tab of the client, or at another one. */
export async function isWatching(): Promise<boolean> {
  if (isThisWatched()) return true;
  const held = (await locks()?.query())?.held ?? [];
  return held.some(({ name }) => name === LOCK);
}

/** Tells the other tabs when the person looks at this one. Returns a function that ends this. */
export function shareWatching(): () => void {
  let release: (() => void) | null = null;
  const stop = () => {
    release?.();
    release = null;
  };
  const update = () => {
    if (!isThisWatched()) return stop();
    if (release) return;
    const released = Promise.withResolvers<void>();
    release = released.resolve;
    void locks()?.request(LOCK, { mode: "shared" }, () => released.promise);
  };
  const changes = new AbortController();
  const { signal } = changes;
  window.addEventListener("focus", update, { signal });
  window.addEventListener("blur", update, { signal });
  document.addEventListener("visibilitychange", update, { signal });
  update();
  return () => {
    changes.abort();
    stop();
  };
}
