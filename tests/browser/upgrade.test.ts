import { expect } from "bun:test";
import { serviceWorker } from "../../packages/web/build.ts";
import { sharedHarness, test } from "./support.ts";

const harness = sharedHarness();

/** A server with a page of two scripts, of which the second is loaded later, and two builds of it. */
function startServer() {
  let build = "one";
  let reachable = true;
  const parts = () => [`/assets/now-${build}.js`, `/assets/later-${build}.js`];
  const type = { "content-type": "text/javascript" };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    routes: {
      "/service-worker.js": async () =>
        reachable ? new Response(await serviceWorker(build, parts()), { headers: type }) : down(),
      "/assets/:name": ({ params, url }) => {
        if (!reachable) return down();
        if (!parts().includes(new URL(url).pathname)) return new Response("", { status: 404 });
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
    reach: (is: boolean) => {
      reachable = is;
    },
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

const pageOf = (build: string) =>
  `<!doctype html><title>${build}</title><script src="/assets/now-${build}.js"></script>`;

const READY = `navigator.serviceWorker.register("/service-worker.js", { updateViaCache: "none" })
  .then(() => navigator.serviceWorker.ready).then(() => true)`;

/** Waits until a build is cached completely (its page comes last) and its worker is active. */
const CACHED = (build: string) => `(async () => {
  for (;;) {
    const cache = await caches.open("parley-${build}");
    const { active, waiting, installing } = await navigator.serviceWorker.ready;
    const isOnly = !waiting && !installing && active.state === "activated";
    if (isOnly && (await cache.match("/"))) return true;
    await new Promise(requestAnimationFrame);
  }
})()`;

const LATER = (build: string) => `new Promise((done) => {
  const script = document.createElement("script");
  script.src = "/assets/later-${build}.js";
  script.onload = () => done(window.shown);
  script.onerror = () => done("failed");
  document.head.append(script);
})`;

test("a build is cached completely for offline use, and replaced by the next build", async () => {
  await using service = startServer();
  const url = service.url;
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
  expect(await page.evaluate(READY)).toBe(true);
  await page.evaluate(CACHED("one"));

  service.reach(false);
  const policy = "default-src 'none'; script-src 'self'; connect-src 'self'";
  expect(await reload()).toEqual({ title: "one", worked: true, policy });
  expect(await page.evaluate(LATER("one"))).toBe("later-one.js");
  expect(await (await page.goto(`${url}/c/some-conversation`))?.fromServiceWorker()).toBe(true);
  await page.goto(`${url}/docs`);
  expect(await page.textContent("body")).toBe("The reference");
  await page.goto(url);

  // The next page load gets the new build; open pages of the old build can still load their scripts.
  service.reach(true);
  const old = await page.context().newPage();
  await old.goto(url);
  service.upgrade();
  expect((await reload()).title).toBe("two");
  await page.evaluate(READY);
  await page.evaluate(CACHED("two"));
  expect(await old.evaluate(LATER("one"))).toBe("later-one.js");

  service.reach(false);
  expect((await reload()).title).toBe("two");
  expect(await page.evaluate(LATER("two"))).toBe("later-two.js");
});
