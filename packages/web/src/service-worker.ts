/// <reference lib="dom" />
// Caches this build of the client, so that it starts offline. With a connection the page comes from the
// server, so a cached build never hides a newer one.

/** Set by the build: its name, and the paths of its files. */
declare const BUILD: string;
declare const FILES: readonly string[];

interface ExtendableEvent extends Event {
  waitUntil(work: Promise<unknown>): void;
}

interface FetchEvent extends ExtendableEvent {
  readonly request: Request;
  respondWith(response: Promise<Response>): void;
}

interface NotificationEvent extends ExtendableEvent {
  readonly notification: Notification;
}

interface Tab {
  focus(): Promise<unknown>;
  postMessage(message: unknown): void;
}

interface Worker {
  readonly clients: {
    claim(): Promise<void>;
    matchAll(options: { type: "window" }): Promise<Tab[]>;
    openWindow(url: string): Promise<unknown>;
  };
  skipWaiting(): Promise<void>;
  addEventListener(type: "install" | "activate", listener: (event: ExtendableEvent) => void): void;
  addEventListener(type: "fetch", listener: (event: FetchEvent) => void): void;
  addEventListener(type: "notificationclick", listener: (event: NotificationEvent) => void): void;
}

const worker = globalThis as unknown as Worker;

const CACHE = `parley-${BUILD}`;
const PAGE = "/";
/** Paths of the server that are not pages of the client. */
const SERVER_PATHS = /^\/(?:api\/|files\/|docs$|health$|ready$|metrics$)|\.\w+$/;
/** After this time the cached page is shown. */
const NETWORK_TIMEOUT_MS = 4000;

worker.addEventListener("install", (event) => event.waitUntil(cacheBuild()));
worker.addEventListener("activate", (event) => event.waitUntil(deleteOldBuilds()));
worker.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== location.origin) return;
  if (request.mode === "navigate" && !SERVER_PATHS.test(pathname))
    event.respondWith(fetchPage(request));
  else if (pathname.startsWith("/assets/")) event.respondWith(fetchAsset(request));
});
worker.addEventListener("notificationclick", (event) => event.waitUntil(openNotification(event)));

async function cacheBuild(): Promise<void> {
  const cache = await caches.open(CACHE);
  await cache.addAll([...FILES]);
  const page = await fetch(PAGE, { cache: "no-store" });
  const assets = (await page.clone().text()).match(/\/assets\/[\w.-]+/g) ?? [];
  // If the server was upgraded just now, the installation fails and the next page load tries again.
  if (!assets.every((path) => FILES.includes(path))) {
    throw new Error("the page is of another build");
  }
  await cache.put(PAGE, page);
  await worker.skipWaiting();
}

/** Keeps the previous build, because open pages may still load its assets. */
async function deleteOldBuilds(): Promise<void> {
  const builds = (await caches.keys()).filter((name) => name.startsWith("parley-"));
  const others = builds.filter((name) => name !== CACHE);
  await Promise.all(others.slice(0, -1).map((name) => caches.delete(name)));
  await worker.clients.claim();
}

async function fetchPage(request: Request): Promise<Response> {
  const cached = await (await caches.open(CACHE)).match(PAGE);
  if (!cached) return fetch(request);
  const timeout = new Promise<null>((resolve) => setTimeout(resolve, NETWORK_TIMEOUT_MS, null));
  // Without the network, the page is taken from the cache.
  const response = await Promise.race([fetch(request), timeout]).catch(() => null);
  return response && response.status < 500 ? response : cached;
}

/**
 * The name of an asset contains its hash, so a copy from any build is the right one, whatever the headers
 * of the request are: scripts of the page are requested with an Origin, copies for the cache without.
 */
async function fetchAsset(request: Request): Promise<Response> {
  return (await caches.match(request, { ignoreVary: true })) ?? fetch(request);
}

async function openNotification({ notification }: NotificationEvent): Promise<void> {
  notification.close();
  const path = String(notification.data);
  const [tab] = await worker.clients.matchAll({ type: "window" });
  if (!tab) return void (await worker.clients.openWindow(path));
  tab.postMessage({ open: path });
  await tab.focus();
}

export {};
