import { navigate } from "./router.ts";

/** Lets the client start without a connection from now on; only where pages come securely. */
export function startWorker(): void {
  if (!("serviceWorker" in navigator)) return;
  const { serviceWorker } = navigator;
  const register = () =>
    // Whoever forbids it has a client that needs a connection to start, and nothing else.
    serviceWorker.register("/service-worker.js", { updateViaCache: "none" }).catch(() => {});
  if (document.readyState === "complete") void register();
  else addEventListener("load", register, { once: true });
  serviceWorker.addEventListener("message", ({ data }) => {
    if (typeof data?.open === "string") navigate(data.open);
  });
}
