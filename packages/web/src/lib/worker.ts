import { navigate } from "./router.ts";

/** Registers the service worker, with which the client starts offline. Needs a secure context. */
export function startWorker(): void {
  if (!("serviceWorker" in navigator)) return;
  const { serviceWorker } = navigator;
  const register = () =>
    // Without the worker, the client only cannot start offline.
    serviceWorker.register("/service-worker.js", { updateViaCache: "none" }).catch(() => {});
  if (document.readyState === "complete") void register();
  else addEventListener("load", register, { once: true });
  serviceWorker.addEventListener("message", ({ data }) => {
    if (typeof data?.open === "string") navigate(data.open);
  });
}
