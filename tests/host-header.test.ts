import { afterAll, expect, test } from "bun:test";
import { connect } from "node:net";
import { startServer } from "@parley/testkit/server.ts";

const server = await startServer();
afterAll(() => server[Symbol.asyncDispose]());

/** Sends a request as it is written. Returns the status and body of the answer. */
async function send(url: string, ...lines: string[]): Promise<{ status: number; body: string }> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.write(`${[...lines, "connection: close"].join("\r\n")}\r\n\r\n`);
  let answer = "";
  for await (const chunk of socket) answer += chunk;
  const [head = "", body = ""] = answer.split("\r\n\r\n");
  return { status: Number(head.split(" ")[1]), body };
}

const invalid = [
  ...["x@y", "é", "a b", "x{y", "x/y", "x?y", "x#y"],
  ...["x:99999", "1.2.3.4.5", "[:::]", "256.256.256.256"],
];

test.each(invalid)("the Host header %j is a bad_request at any path", async (host) => {
  for (const path of [
    ...["/health", "/x/health", "/x/metrics", "/asyncapi.json", "/nothing"],
    ...["/api/ws?token=ply_secret", "/api/getMe"],
  ]) {
    const { status, body } = await send(server.url, `GET ${path} HTTP/1.1`, `host: ${host}`);
    expect([path, status]).toEqual([path, 400]);
    expect(body).toContain('"bad_request"');
  }
  expect(server.output()).not.toMatch(/request failed|ply_secret/);
});

test.each(["chat.example", "chat.example:8443", "a_b", "127.0.0.1", "[::1]:80"])(
  "the Host header %j is valid",
  async (host) => {
    const { status } = await send(server.url, "GET /health HTTP/1.1", `host: ${host}`);
    expect(status).toBe(200);
  },
);

test.each([
  ["HTTP/1.0 without a Host header", "HTTP/1.0", []],
  ["an empty Host header", "HTTP/1.1", ["host:"]],
] as const)("a request of %s gets the page at its whole path", async (_, version, headers) => {
  const statusOf = async (path: string) =>
    (await send(server.url, `GET ${path} ${version}`, ...headers)).status;
  expect(await statusOf("/health")).toBe(200);
  expect(await statusOf("/metrics?a=http://b/health")).toBe(200);
  expect(await statusOf("/asyncapi.json")).toBe(200);
  expect(await statusOf("/api/ws?token=ply_secret")).toBe(401);
  expect(await statusOf("/x/health")).toBe(404);
  expect(await statusOf("/x/metrics")).toBe(404);
  expect(await statusOf("/x?a=http://b/health")).toBe(404);
  expect(server.output()).not.toMatch(/request failed|ply_secret/);
});

test("the separate listener of metrics takes any Host header", async () => {
  await using apart = await startServer({ PARLEY_METRICS_PORT: "0" });
  const [, address = ""] = await apart.printed(/Metrics are at (\S+)/);
  for (const lines of [["HTTP/1.0"], ["HTTP/1.1", "host: x:99999"], ["HTTP/1.1", "host: x@y"]]) {
    const [version, ...headers] = lines;
    const statusOf = async (path: string) =>
      (await send(address, `GET ${path} ${version}`, ...headers)).status;
    expect(await statusOf("/metrics")).toBe(200);
    expect(await statusOf("/x/metrics")).toBe(404);
  }
});
