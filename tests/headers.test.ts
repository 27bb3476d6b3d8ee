import { afterAll, describe, expect, test } from "bun:test";
import { people, post } from "@parley/testkit/client.ts";
import { startServer } from "@parley/testkit/server.ts";

const server = await startServer();
afterAll(() => server[Symbol.asyncDispose]());

describe("headers", () => {
  test("of the API forbid caching", async () => {
    const [alice] = await people(server.url, "alice");
    const answers = [
      await post(server.url, "getMe", {}, alice.token),
      await post(server.url, "getMe", {}),
      await post(server.url, "nothing", {}, alice.token),
      await fetch(`${server.url}/api/limits`),
      await fetch(`${server.url}/health`),
    ];
    for (const { headers } of answers) {
      expect(headers.get("cache-control")).toBe("no-store");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
    }
  });

  test.each(["/", "/docs"])(
    "of the page %s disable browser features that it does not need",
    async (path) => {
      const { headers } = await fetch(server.url + path);
      expect(headers.get("permissions-policy")).toContain("camera=()");
      expect(headers.get("cache-control")).toBe("no-cache");
    },
  );

  test("include Strict-Transport-Security only behind a trusted proxy with HTTPS", async () => {
    await using proxied = await startServer({ PARLEY_PROXIES: "1" });
    const strict = async (url: string, proto?: string) => {
      const headers = proto === undefined ? undefined : { "x-forwarded-proto": proto };
      const response = await fetch(`${url}/health`, { ...(headers && { headers }) });
      return response.headers.get("strict-transport-security");
    };
    expect(await strict(proxied.url, "https")).toBe("max-age=31536000");
    expect(await strict(proxied.url, "http, https")).toBe("max-age=31536000");
    expect(await strict(proxied.url, "https, http")).toBeNull();
    expect(await strict(proxied.url)).toBeNull();
    expect(await strict(server.url, "https")).toBeNull();
  });
});

test("addresses that the server tells have the scheme that the trusted proxy names last", async () => {
  await using proxied = await startServer({ PARLEY_PROXIES: "1" });
  const schemes = async ({ url }: { url: string }, proto?: string) => {
    const headers: Record<string, string> = proto ? { "x-forwarded-proto": proto } : {};
    const [person] = await people(url, "person");
    const { body } = await post(url, "exportMe", {}, person.token, headers);
    const exported = (body.ok ? body.result : null) as { url: string };
    const { servers } = await (await fetch(`${url}/asyncapi.json`, { headers })).json();
    const [first] = Object.values(servers) as { protocol: string }[];
    return [new URL(exported.url).protocol, first?.protocol];
  };
  expect(await schemes(proxied, "https")).toEqual(["https:", "wss"]);
  expect(await schemes(proxied, "http, https")).toEqual(["https:", "wss"]);
  expect(await schemes(proxied, "https, http")).toEqual(["http:", "ws"]);
  expect(await schemes(proxied)).toEqual(["http:", "ws"]);
  expect(await schemes(server, "https")).toEqual(["http:", "ws"]);
});

describe("Vary", () => {
  test.each([
    ["/", "accept-encoding"],
    ["/asyncapi.json", "host, x-forwarded-proto"],
    ["/api/limits", ""],
  ])("of %s names all headers that the response depends on", async (path, others) => {
    for (const origin of [undefined, "https://elsewhere.example"]) {
      const { headers } = await fetch(server.url + path, { headers: origin ? { origin } : {} });
      const names = (headers.get("vary") ?? "").toLowerCase().split(", ");
      expect(names.sort()).toEqual([...others.split(", "), "origin"].filter(Boolean).sort());
    }
  });
});

describe("PARLEY_METRICS_PORT", () => {
  test("moves the metrics, and nothing else, to a separate listener", async () => {
    await using apart = await startServer({ PARLEY_METRICS_PORT: "0" });
    const [, address = ""] = await apart.printed(/Metrics are at (\S+)/);
    expect(new URL(address).hostname).toBe("127.0.0.1");
    expect(await (await fetch(address)).text()).toContain("parley_sockets");
    expect((await fetch(address.replace("/metrics", "/health"))).status).toBe(404);
    expect((await fetch(`${apart.url}/metrics`)).status).toBe(404);
    expect((await fetch(`${server.url}/metrics`)).status).toBe(200);
  });
});
