import { expect } from "bun:test";
import { serviceWorker } from "../../packages/web/build.ts";
import { sharedHarness, test } from "./support.ts";

const harness = sharedHarness();

/** If the server takes longer than this, the worker shows the cached page. */
const PAGE_TIMEOUT_MS = 4000;

/** A server with a page of two scripts, of which the second is loaded later, and two builds of it. */
function startServer() {
  let build = "one";
  let reachable = true;
  const scripts = () => [`/assets/now-${build}.js`, `/assets/later-${build}.js`];
  const type = { "content-type": "text/javascript" };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    routes: {
      "/service-worker.js": async () =>
        reachable ? new Response(await serviceWorker(build, scripts()), { headers: type }) : down(),
      "/assets/:name": ({ params, url }) => {
        if (!reachable) return down();
        if (!scripts().includes(new URL(url).pathname)) return new Response("", { status: 404 });
        return new Response(`window.shown = ${JSON.stringify(params.name)}`, { headers: type });
      },
      "/docs": () => new Response("The reference", { headers: { "content-type": "text/html" } }),
      "/*": () => (reachable ? new Response(pageOf(build), { headers: page }) : down()),
    },
  });
  const page = {
    "content-type": "text/html",
    "cache-control": "no-cache",
    "content-security-policy": "default-src 'none'; script-src 'self'; connect-src 'self'",
  };
  const down = () => new Response("bad gateway", { status: 502 });
  return {
    url: `http://127.0.0.1:${server.port}`,
    upgrade: () => {
      build = "two";
    },
    setReachable: (isReachable: boolean) => {
      reachable = isReachable;
    },
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

const pageOf = (build: string) =>
  `<!doctype html><title>${build}</title><script src="/assets/now-${build}.js"></script>`;

const REGISTER_WORKER = `navigator.serviceWorker.register("/service-worker.js", { updateViaCache: "none" })
  .then(() => navigator.serviceWorker.ready).then(() => true)`;

/** Waits until a build is cached completely (its page comes last) and its worker is active. */
const waitUntilCached = (build: string) => `(async () => {
  for (;;) {
    const cache = await caches.open("parley-${build}");
    const { active, waiting, installing } = await navigator.serviceWorker.ready;
    const isOnly = !waiting && !installing && active.state === "activated";
    if (isOnly && (await cache.match("/"))) return true;
    await new Promise(requestAnimationFrame);
  }
})()`;

const loadLaterScript = (build: string) => `new Promise((done) => {
  const script = document.createElement("script");
  script.src = "/assets/later-${build}.js";
  script.onload = () => done(window.shown);
  script.onerror = () => done("failed");
  document.head.append(script);
})`;

test("a build is cached completely for offline use, and replaced by the next build", async () => {
  await using server = startServer();
  const url = server.url;
  await using visit = await harness().visit(null, {
    url,
    networkFails: true,
    serviceWorkers: "allow",
  });
  const { page } = visit;
  const reload = async () => {
    const response = await page.reload();
    return {
      title: await page.title(),
      worked: response?.fromServiceWorker(),
      policy: (await response?.allHeaders())?.["content-security-policy"],
    };
  };
  expect(await page.evaluate(REGISTER_WORKER)).toBe(true);
  await page.evaluate(waitUntilCached("one"));

  server.setReachable(false);
  const policy = "default-src 'none'; script-src 'self'; connect-src 'self'";
  expect(await reload()).toEqual({ title: "one", worked: true, policy });
  expect(await page.evaluate(loadLaterScript("one"))).toBe("later-one.js");
  expect(await (await page.goto(`${url}/c/some-conversation`))?.fromServiceWorker()).toBe(true);
  await page.goto(`${url}/docs`);
  expect(await page.textContent("body")).toBe("The reference");
  await page.goto(url);

  // The next page load gets the new build; open pages of the old build can still load their scripts.
  server.setReachable(true);
  const old = await page.context().newPage();
  await old.goto(url);
  server.upgrade();
  let title = "";
  let tookMs = 0;
  do {
    const start = performance.now();
    ({ title } = await reload());
    tookMs = performance.now() - start;
  } while (title === "one" && tookMs > PAGE_TIMEOUT_MS);
  expect(title).toBe("two");
  await page.evaluate(REGISTER_WORKER);
  await page.evaluate(waitUntilCached("two"));
  expect(await old.evaluate(loadLaterScript("one"))).toBe("later-one.js");

  server.setReachable(false);
  expect((await reload()).title).toBe("two");
  expect(await page.evaluate(loadLaterScript("two"))).toBe("later-two.js");
});
