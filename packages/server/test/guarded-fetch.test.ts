import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { selfSigned } from "@parley/testkit/certificate.ts";
import { rawServer } from "@parley/testkit/raw-server.ts";
import { FetchError, type Resolve } from "../src/security/destination.ts";
import { createGuardedFetch, type GuardedRequest } from "../src/security/guarded-fetch.ts";

const certificate = selfSigned("DNS:hooks.test,DNS:second.test");
const ofAnother = selfSigned("DNS:another.test");
const ofAddress = selfSigned("IP:127.0.0.1");
afterAll(() => {
  for (const each of [certificate, ofAnother, ofAddress]) each[Symbol.dispose]();
});
const ca = [certificate, ofAnother, ofAddress]
  .map(({ cert }) => readFileSync(cert, "utf8"))
  .join("\n");

/** Every name leads to this machine. */
const toLoopback: Resolve = async () => ["127.0.0.1"];
const open = createGuardedFetch({ allowPrivate: true, resolve: toLoopback, ca });
const closed = createGuardedFetch({ allowPrivate: false, resolve: toLoopback, ca });

const HEAD = "HTTP/1.1 200 OK\r\n";
const ok = (socket: Socket) => socket.end(`${HEAD}content-length: 2\r\n\r\nok`);

/** Writes as long as the client reads. */
function flood(socket: Socket, head: string, chunk: Uint8Array | string, onWrite?: () => void) {
  socket.write(head);
  const write = () => {
    if (socket.destroyed) return;
    onWrite?.();
    // Without the pause a client that reads fast enough would keep this process from anything else.
    if (socket.write(chunk)) setImmediate(write);
  };
  socket.on("drain", write);
  write();
}

async function failure(work: Promise<unknown>): Promise<FetchError> {
  const error = await work.then(
    () => new Error("the request succeeded"),
    (reason) => reason,
  );
  if (error instanceof FetchError) return error;
  throw error;
}
const codeOf = async (work: Promise<unknown>) => (await failure(work)).code;
const read = async (address: string, request?: GuardedRequest) =>
  (await open(address, request)).text();

describe("the connection", () => {
  test("is made to the resolved address, with the name in the handshake and the Host header", async () => {
    await using server = await rawServer(ok, { certificate });
    // No other resolver knows the name: only the given address can lead to the server.
    expect(await read(`https://hooks.test:${server.port}/path?query`)).toBe("ok");
    expect(server.received[0]?.serverName).toBe("hooks.test");
    expect(server.received[0]?.text).toStartWith("GET /path?query HTTP/1.1\r\n");
    expect(server.received[0]?.text.toLowerCase()).toContain(`host: hooks.test:${server.port}\r\n`);
  });

  test("is made to the first answer of a resolver that answers differently the next time", async () => {
    await using first = await rawServer(ok, { certificate });
    await using second = await rawServer(ok, { certificate, host: "127.0.0.2", port: first.port });
    let asked = 0;
    const resolve: Resolve = async () => [asked++ === 0 ? "127.0.0.1" : "127.0.0.2"];
    const rebound = createGuardedFetch({ allowPrivate: true, resolve, ca });
    const response = await rebound(`https://hooks.test:${first.port}/`);
    expect(await response.text()).toBe("ok");
    expect([asked, first.connections(), second.connections()]).toEqual([1, 1, 0]);
    await (await rebound(`https://hooks.test:${first.port}/`)).text();
    expect([asked, first.connections(), second.connections()]).toEqual([2, 1, 1]);
  });

  test("is refused when a name that was public leads to this machine", async () => {
    await using server = await rawServer(ok, { certificate });
    const address = `https://hooks.test:${server.port}/`;
    expect(await codeOf(closed(address))).toBe("address_refused");
    expect(await codeOf(closed(`https://127.0.0.1:${server.port}/`))).toBe("address_refused");
    expect(await codeOf(closed(`http://hooks.test:${server.port}/`))).toBe("address_invalid");
    expect(server.connections()).toBe(0);
  });

  test("needs a certificate for the name, not for the address", async () => {
    await using another = await rawServer(ok, { certificate: ofAnother });
    await using address = await rawServer(ok, { certificate: ofAddress });
    for (const { port, received } of [another, address]) {
      const error = await failure(open(`https://hooks.test:${port}/`));
      expect(error.code).toBe("connection_failed");
      expect(error.message).toContain("ERR_TLS_CERT_ALTNAME_INVALID");
      expect(received).toEqual([]);
    }
    expect(await read(`https://127.0.0.1:${address.port}/`)).toBe("ok");
  });

  test("needs a certificate of a known authority", async () => {
    await using server = await rawServer(ok, { certificate });
    const strict = createGuardedFetch({ allowPrivate: true, resolve: toLoopback });
    const error = await failure(strict(`https://hooks.test:${server.port}/`));
    expect(error.code).toBe("connection_failed");
    expect(server.received).toEqual([]);
  });

  test("is a new one for every request", async () => {
    await using server = await rawServer(
      (socket) => socket.write(`${HEAD}connection: keep-alive\r\ncontent-length: 2\r\n\r\nok`),
      { certificate },
    );
    const names = ["hooks.test", "hooks.test", "second.test"];
    for (const name of names) expect(await read(`https://${name}:${server.port}/`)).toBe("ok");
    expect(server.received.map(({ serverName }) => serverName)).toEqual(names);
    expect(server.connections()).toBe(3);
  });

  describe("that may be reused", () => {
    const respond = `${HEAD}content-length: 2\r\n\r\nok`;
    /** Answers each request on a connection, and not only the first one. */
    const keepOpen = (socket: Socket) => {
      socket.write(respond);
      socket.on("data", () => socket.write(respond));
    };
    const reuseConnection = true;

    test("is one of the same name and address", async () => {
      await using server = await rawServer(keepOpen, { certificate });
      const request = async (name: string) =>
        (await open(`https://${name}:${server.port}/`, { reuseConnection })).text();
      for (const name of ["hooks.test", "second.test", "hooks.test", "second.test"]) {
        expect(await request(name)).toBe("ok");
      }
      const names = server.received.map(({ serverName }) => serverName);
      expect(names).toEqual(["hooks.test", "second.test"]);
      expect(await codeOf(request("another.test"))).toBe("connection_failed");
      expect(server.received).toHaveLength(2);
    });

    test("is not used once the name leads elsewhere", async () => {
      await using first = await rawServer(keepOpen, { certificate });
      const elsewhere = { certificate, host: "127.0.0.2", port: first.port };
      await using second = await rawServer(keepOpen, elsewhere);
      let asked = 0;
      const resolve: Resolve = async () => [asked++ < 2 ? "127.0.0.1" : "127.0.0.2"];
      const rebound = createGuardedFetch({ allowPrivate: true, resolve, ca });
      for (let count = 0; count < 3; count++) {
        await (await rebound(`https://hooks.test:${first.port}/`, { reuseConnection })).text();
      }
      expect([asked, first.connections(), second.connections()]).toEqual([3, 1, 1]);
    });

    test("is not used by requests that do not allow it", async () => {
      await using server = await rawServer(keepOpen, { certificate });
      const address = `https://hooks.test:${server.port}/`;
      await (await open(address, { reuseConnection })).text();
      expect(await read(address)).toBe("ok");
      expect(server.connections()).toBe(2);
    });

    test("is replaced if the other side closes it instead of answering", async () => {
      await using server = await rawServer((socket) => {
        socket.write(respond);
        socket.on("data", () => socket.destroy());
      });
      const address = `http://hooks.test:${server.port}/`;
      for (let count = 0; count < 3; count++) {
        const response = await open(address, { method: "POST", body: "{}", reuseConnection });
        expect(await response.text()).toBe("ok");
      }
    });

    test("is replaced for each of several requests whose connections are closed together", async () => {
      const sockets: Socket[] = [];
      await using server = await rawServer((socket) => {
        sockets.push(socket);
        keepOpen(socket);
      });
      const address = `http://hooks.test:${server.port}/`;
      const together = () =>
        Promise.all(
          Array.from({ length: 4 }, async () =>
            (await open(address, { method: "POST", body: "{}", reuseConnection })).text(),
          ),
        );
      await together();
      for (const socket of sockets.splice(0)) {
        socket.removeAllListeners("data");
        socket.on("data", () => socket.destroy());
      }
      expect(await together()).toEqual(["ok", "ok", "ok", "ok"]);
    });

    test("is not replaced if it is a new one", async () => {
      await using server = await rawServer((socket) => socket.destroy());
      const request = open(`http://hooks.test:${server.port}/`, { reuseConnection });
      expect(await codeOf(request)).toBe("connection_failed");
      expect(server.connections()).toBe(1);
    });

    test("is closed when a body is cancelled that has not come", async () => {
      await using server = await rawServer((socket) =>
        socket.write(`${HEAD}content-length: 10\r\n\r\nabc`),
      );
      const response = await open(`http://hooks.test:${server.port}/`, { reuseConnection });
      await response.body?.cancel();
      await server.closed;
    });
  });

  /** Makes a request in a process with other environment variables. Returns its body or error code. */
  async function requestWith(environment: Record<string, string>, address: string) {
    const script = `
      import { createGuardedFetch } from "${import.meta.dir}/../src/security/guarded-fetch.ts";
      const fetch = createGuardedFetch({ allowPrivate: true });
      const result = fetch("${address}").then((response) => response.text());
      process.stdout.write(await result.catch(({ code }) => code));`;
    const child = Bun.spawn([process.execPath, "-e", script], {
      env: { ...process.env, ...environment },
    });
    return child.stdout.text();
  }

  test("does not use the proxy of the environment", async () => {
    await using proxy = await rawServer(ok);
    await using server = await rawServer(ok);
    const environment = {
      http_proxy: `http://127.0.0.1:${proxy.port}`,
      no_proxy: "",
      NO_PROXY: "",
    };
    expect(await requestWith(environment, `http://127.0.0.1:${server.port}/`)).toBe("ok");
    expect([proxy.connections(), server.connections()]).toEqual([0, 1]);
  });

  test("trusts the additional authorities of the environment, but not every certificate", async () => {
    await using server = await rawServer(ok, { certificate: ofAddress });
    const address = `https://127.0.0.1:${server.port}/`;
    expect(await requestWith({ NODE_EXTRA_CA_CERTS: ofAddress.cert }, address)).toBe("ok");
    const unchecked = { NODE_TLS_REJECT_UNAUTHORIZED: "0" };
    expect(await requestWith(unchecked, address)).toBe("connection_failed");
  });
});

describe("the request", () => {
  test("has the given method, headers and body", async () => {
    await using server = await rawServer(ok);
    await read(`http://hooks.test:${server.port}/`, {
      method: "POST",
      headers: { "Content-Type": "application/json", Host: "other.test", "Accept-Encoding": "br" },
      body: '{"a":"é"}',
    });
    const text = server.received[0]?.text ?? "";
    expect(text).toStartWith("POST / HTTP/1.1\r\n");
    expect(text.toLowerCase()).toContain("content-type: application/json\r\n");
    expect(text.toLowerCase()).toContain("content-length: 10\r\n");
    expect(text.toLowerCase()).toContain(`host: hooks.test:${server.port}\r\n`);
    expect(text.toLowerCase()).toContain("accept-encoding: identity\r\n");
    expect(text).not.toContain("other.test");
    expect(text).toEndWith('\r\n\r\n{"a":"é"}');
  });

  test("is bounded", async () => {
    await using server = await rawServer(ok);
    const send = (body: string | Uint8Array<ArrayBuffer>) =>
      open(`http://hooks.test:${server.port}/`, { method: "POST", body, maxRequestBytes: 4 });
    expect(await codeOf(send("abcde"))).toBe("request_too_large");
    expect(await codeOf(send("ééé"))).toBe("request_too_large");
    expect(await codeOf(send(new Uint8Array(5)))).toBe("request_too_large");
    expect(server.connections()).toBe(0);
    expect((await send("éé")).status).toBe(200);
  });
});

describe("the response", () => {
  test("is given as it came, whatever its status", async () => {
    await using server = await rawServer((socket) =>
      socket.end("HTTP/1.1 410 Gone\r\nx-reason: moved\r\ncontent-length: 4\r\n\r\ngone"),
    );
    const response = await open(`http://hooks.test:${server.port}/`);
    expect([response.status, response.headers.get("x-reason")]).toEqual([410, "moved"]);
    expect(await response.text()).toBe("gone");
  });

  test("may have no body", async () => {
    await using server = await rawServer((socket) => socket.end("HTTP/1.1 204 None\r\n\r\n"));
    const response = await open(`http://hooks.test:${server.port}/`);
    expect([response.status, await response.text()]).toEqual([204, ""]);
  });

  test("is a redirect if the server answers so, and nobody follows it", async () => {
    await using target = await rawServer(ok);
    await using server = await rawServer((socket) =>
      socket.end(
        `HTTP/1.1 307 Elsewhere\r\nlocation: http://127.0.0.1:${target.port}/\r\ncontent-length: 0\r\n\r\n`,
      ),
    );
    const response = await open(`http://hooks.test:${server.port}/`);
    expect(response.status).toBe(307);
    await response.text();
    expect([server.connections(), target.connections()]).toEqual([1, 0]);
  });

  test("is streamed", async () => {
    const next = Promise.withResolvers<void>();
    await using server = await rawServer(async (socket) => {
      socket.write(`${HEAD}content-length: 6\r\n\r\none`);
      await next.promise;
      socket.end("two");
    });
    const response = await open(`http://hooks.test:${server.port}/`);
    const chunks: string[] = [];
    for await (const chunk of response.body ?? []) {
      chunks.push(new TextDecoder().decode(chunk));
      next.resolve();
    }
    expect(chunks).toEqual(["one", "two"]);
  });

  test("may be exactly as large as allowed", async () => {
    await using server = await rawServer(ok);
    const address = `http://hooks.test:${server.port}/`;
    expect(await read(address, { maxResponseBytes: 2 })).toBe("ok");
    expect(await codeOf(read(address, { maxResponseBytes: 1 }))).toBe("response_too_large");
  });

  const MIB = new Uint8Array(1_048_576);
  test.each([
    ["with a length of 100 MB", "content-length: 104857600\r\n\r\n", MIB],
    ["without a length", "\r\n", MIB],
    ["in chunks", "transfer-encoding: chunked\r\n\r\n", `10000\r\n${"a".repeat(65_536)}\r\n`],
  ])("is not received beyond the limit: %s", async (_, head, chunk) => {
    let written = 0;
    await using server = await rawServer((socket) =>
      flood(socket, HEAD + head, chunk, () => {
        written += chunk.length;
      }),
    );
    const response = await open(`http://hooks.test:${server.port}/`, { maxResponseBytes: 65_536 });
    expect(response.status).toBe(200);
    expect(await codeOf(response.text())).toBe("response_too_large");
    await server.closed;
    // What the buffers of both sockets hold.
    expect(written).toBeLessThan(50_000_000);
  });

  test("can be cancelled, which closes the connection", async () => {
    await using server = await rawServer((socket) => flood(socket, `${HEAD}\r\n`, MIB));
    const response = await open(`http://hooks.test:${server.port}/`);
    await response.body?.cancel();
    await server.closed;
  });

  test("is not decompressed", async () => {
    const bomb = gzipSync(new Uint8Array(100_000_000));
    const head = `${HEAD}content-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n\r\n`;
    await using server = await rawServer((socket) => {
      socket.write(head);
      socket.end(bomb);
    });
    const response = await open(`http://hooks.test:${server.port}/`);
    expect(response.status).toBe(200);
    expect(await codeOf(response.text())).toBe("response_encoded");
  });

  test.each([
    ["closes before it answers", ""],
    ["closes within the headers", `${HEAD}content-le`],
    ["closes within the body", `${HEAD}content-length: 10\r\n\r\nabc`],
    ["closes within the chunks", `${HEAD}transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n`],
    ["speaks another protocol", "SSH-2.0-OpenSSH_9.2\r\n"],
    ["answers with no known status", "HTTP/1.1 999 What\r\ncontent-length: 0\r\n\r\n"],
  ])("fails if the server %s", async (_, answer) => {
    await using server = await rawServer((socket) => socket.end(answer));
    const address = `http://hooks.test:${server.port}/?token=secret`;
    const error = await failure(read(address));
    expect(error.code).toBe("connection_failed");
    expect(error.message).not.toMatch(/secret|127\.0\.0\.1/);
  });

  test("fails if nothing listens", async () => {
    await using server = await rawServer(ok);
    await server[Symbol.asyncDispose]();
    expect(await codeOf(open(`https://hooks.test:${server.port}/`))).toBe("connection_failed");
  });

  test("fails if its headers never end", async () => {
    const line = `x-header: ${"a".repeat(1000)}\r\n`;
    await using server = await rawServer((socket) => flood(socket, HEAD, line));
    expect(await codeOf(open(`http://hooks.test:${server.port}/`))).toBe("connection_failed");
  });
});

describe("the deadline", () => {
  const timeoutMs = 200;
  const drip = (head: string) => (socket: Socket) => {
    socket.write(head);
    const timer = setInterval(() => socket.write("a"), 20);
    socket.once("close", () => clearInterval(timer));
  };
  const say = (text: string) => (socket: Socket) => void socket.write(text);
  const interim = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100);

  /** On a busy machine a request may end before it has a connection: it is then made again. */
  async function expectTimeout(
    server: Awaited<ReturnType<typeof rawServer>>,
    request: () => Promise<unknown>,
  ): Promise<void> {
    do {
      expect(await codeOf(request())).toBe("timeout");
    } while (server.connections() === 0);
    await server.closed;
  }

  test.each([
    ["never answers", () => {}],
    ["sends its headers byte by byte", drip(`${HEAD}x: `)],
    ["sends its body byte by byte", drip(`${HEAD}content-length: 1000\r\n\r\n`)],
    ["never ends its body", say(`${HEAD}content-length: 10\r\n\r\nabc`)],
    ["answers with interim responses only", (socket: Socket) => flood(socket, "", interim)],
  ])("ends a request to a server that %s", async (_, answer) => {
    await using server = await rawServer(answer);
    await expectTimeout(server, () => read(`http://hooks.test:${server.port}/`, { timeoutMs }));
  });

  test("ends a handshake", async () => {
    await using server = await rawServer(() => {});
    await expectTimeout(server, () => open(`https://hooks.test:${server.port}/`, { timeoutMs }));
  });

  test("ends waiting for the resolver", async () => {
    const stuck = createGuardedFetch({ allowPrivate: true, resolve: () => new Promise(() => {}) });
    expect(await codeOf(stuck("https://hooks.test/", { timeoutMs }))).toBe("timeout");
  });
});

describe("the caller's signal", () => {
  test("aborts while the server hangs, with its own reason", async () => {
    const controller = new AbortController();
    await using server = await rawServer(() => controller.abort(new Error("shutting down")));
    const request = open(`http://hooks.test:${server.port}/`, { signal: controller.signal });
    await expect(request).rejects.toThrow("shutting down");
    await server.closed;
  });

  test("aborts while the body is read", async () => {
    const controller = new AbortController();
    await using server = await rawServer((socket) =>
      socket.write(`${HEAD}content-length: 10\r\n\r\nabc`),
    );
    const { signal } = controller;
    const response = await open(`http://hooks.test:${server.port}/`, { signal });
    const text = response.text();
    controller.abort(new Error("shutting down"));
    await expect(text).rejects.toThrow("shutting down");
    await server.closed;
  });

  test("prevents the request if it was aborted before", async () => {
    await using server = await rawServer(ok);
    const signal = AbortSignal.abort(new Error("shutting down"));
    const request = open(`http://hooks.test:${server.port}/`, { signal });
    await expect(request).rejects.toThrow("shutting down");
    await expect(open("not an address", { signal })).rejects.toThrow("shutting down");
    expect(server.connections()).toBe(0);
  });
});
