import { afterAll, expect, test } from "bun:test";
import { connect } from "node:net";
import { groupOf, people } from "@parley/testkit/client.ts";
import { announce } from "@parley/testkit/files.ts";
import { startServer } from "@parley/testkit/server.ts";
import { until } from "@parley/testkit/until.ts";

const server = await startServer();
afterAll(() => server[Symbol.asyncDispose]());

/** Sends the head of a request and the start of its body, and closes the connection. */
async function interrupt(method: string, address: string, token?: string): Promise<void> {
  const { hostname, port, pathname, search, host } = new URL(address, server.url);
  const lines = [
    `${method} ${pathname}${search} HTTP/1.1`,
    `host: ${host}`,
    "content-type: application/json",
    "content-length: 100",
    ...(token === undefined ? [] : [`authorization: Bearer ${token}`]),
  ];
  const socket = connect(Number(port), hostname);
  const sent = Promise.withResolvers<unknown>();
  socket.write(`${lines.join("\r\n")}\r\n\r\n{`, sent.resolve);
  await sent.promise;
  socket.destroy();
}

const calls = async () => {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  return text.split("\n").filter((line) => line.startsWith("parley_calls_total"));
};

test("a client that closes its connection within a body causes no internal error", async () => {
  const [alice] = await people(server.url, "alice");
  const chat = await groupOf(alice);
  const { url: hook } = await alice.call("createIncomingHook", { chat_id: chat.id, name: "ci" });
  const { upload_url } = await announce(alice, chat.id, "a.txt", 100);
  await interrupt("PUT", upload_url);
  await interrupt("POST", hook);
  await interrupt("POST", "/mcp", alice.token);
  const operations = { signIn: undefined, sendMessage: alice.token };
  for (const [name, token] of Object.entries(operations)) {
    await interrupt("POST", `/api/${name}`, token);
    await until(
      async () => (await calls()).some((line) => line.includes(`operation="${name}"`)),
      `the call of ${name} is counted`,
    );
  }
  expect((await calls()).filter((line) => line.includes('code="internal"'))).toEqual([]);
  expect(server.output()).not.toMatch(/"level":[56]0/);
});
