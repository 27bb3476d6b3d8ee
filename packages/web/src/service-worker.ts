/// <reference lib="dom" />
// Keeps this build of the client, so that it starts without a connection. Whoever has one gets the
// page from the service: what is kept here is never shown in place of a newer build.

/** Put in by the build: a name for it, and the paths of all that it consists of. */
declare const BUILD: string;
declare const FILES: readonly string[];

interface LastingEvent extends Event {
  waitUntil(work: Promise<unknown>): void;
}

interface FetchEvent extends LastingEvent {
  readonly request: Request;
  respondWith(answer: Promise<Response>): void;
}

interface NotificationEvent extends LastingEvent {
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
  addEventListener(type: "install" | "activate", listener: (event: LastingEvent) => void): void;
  addEventListener(type: "fetch", listener: (event: FetchEvent) => void): void;
  addEventListener(type: "notificationclick", listener: (event: NotificationEvent) => void): void;
}

const worker = globalThis as unknown as Worker;

const CACHE = `parley-${BUILD}`;
const PAGE = "/";
/** Addresses of the service that are not the client's; at all others the one page is shown. */
const NOT_OURS = /^\/(?:api\/|docs$|health$|ready$|metrics$)|\.\w+$/;
/** A connection that takes longer is as good as none. */
const PATIENCE_MS = 4000;

worker.addEventListener("install", (event) => event.waitUntil(keep()));
worker.addEventListener("activate", (event) => event.waitUntil(takeOver()));
worker.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== location.origin) return;
  if (request.mode === "navigate" && !NOT_OURS.test(pathname)) event.respondWith(page(request));
  else if (pathname.startsWith("/assets/")) event.respondWith(asset(request));
});
worker.addEventListener("notificationclick", (event) => event.waitUntil(openFrom(event)));

async function keep(): Promise<void> {
  const cache = await caches.open(CACHE);
  await cache.addAll([...FILES]);
  const kept = await fetch(PAGE, { cache: "no-store" });
  const parts = (await kept.clone().text()).match(/\/assets\/[\w.-]+/g) ?? [];
  // Tried again with the next page, if the service was upgraded in this very moment.
  if (!parts.every((path) => FILES.includes(path))) throw new Error("the page is of another build");
  await cache.put(PAGE, kept);
  await worker.skipWaiting();
}

/** Pages of the build before this one may still be open, and ask for parts of it. */
async function takeOver(): Promise<void> {
  const ours = (await caches.keys()).filter((name) => name.startsWith("parley-"));
  const others = ours.filter((name) => name !== CACHE);
  await Promise.all(others.slice(0, -1).map((name) => caches.delete(name)));
  await worker.clients.claim();
}

async function page(request: Request): Promise<Response> {
  const kept = await (await caches.open(CACHE)).match(PAGE);
  if (!kept) return fetch(request);
  const patience = new Promise<null>((end) => setTimeout(end, PATIENCE_MS, null));
  const answer = await Promise.race([fetch(request), patience]).catch(() => null);
  return answer && answer.status < 500 ? answer : kept;
}

/** Its name tells its content: wherever it is kept, it is the right one. */
async function asset(request: Request): Promise<Response> {
  return (await caches.match(request)) ?? fetch(request);
}

async function openFrom({ notification }: NotificationEvent): Promise<void> {
  notification.close();
  const path = String(notification.data);
  const [tab] = await worker.clients.matchAll({ type: "window" });
  if (!tab) return void (await worker.clients.openWindow(path));
  tab.postMessage({ open: path });
  await tab.focus();
}

export {};
