import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { operations } from "@parley/protocol";
import { answer, groupOf, Person, people, RawSocket, say, signUp } from "@parley/testkit/client.ts";
import {
  type Environment,
  onSeveralNodes,
  spawnMain,
  startServer,
} from "@parley/testkit/server.ts";
import manifest from "../../packages/server/package.json" with { type: "json" };

const { version } = manifest;
const FRIEND = "https://chat.example.com";
/** The longest time until a start is refused. */
const PATIENCE_MS = 120_000;
const STRANGER = "https://evil.example.com";
const server = await startServer({ PARLEY_ORIGINS: `${FRIEND}, http://localhost:3000` });
const [alice] = await people(server.url, "alice");
afterAll(() => server[Symbol.asyncDispose]());

describe("the endpoints for operators", () => {
  test("/ready succeeds", async () => {
    const { status, body } = await answer(await fetch(`${server.url}/ready`));
    expect({ status, body }).toEqual({ status: 200, body: { ok: true } });
  });

  test("/health and /metrics have the version of the server", async () => {
    const health = await fetch(`${server.url}/health`);
    expect(await health.json()).toEqual({ ok: true, version });
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    expect(metrics).toContain(`\nparley_build_info{version="${version}"} 1\n`);
  });

  // Each node counts only its own calls.
  test.skipIf(onSeveralNodes)(
    "/metrics counts calls by operation and outcome, in Prometheus' format",
    async () => {
      await alice.call("getMe");
      const response = await fetch(`${server.url}/metrics`);
      expect(response.headers.get("content-type")).toStartWith("text/plain");
      const text = await response.text();
      expect(text).toMatch(/^# TYPE \S+ counter$/m);
      expect(text).toMatch(/^parley_calls_total\{operation="getMe",code="ok"\} \d+$/m);
      expect(text).not.toContain(alice.username);
    },
  );
});

describe("the reference", () => {
  const methods = Object.values(operations);

  test("/openapi.json describes every operation", async () => {
    const response = await fetch(`${server.url}/openapi.json`);
    expect(response.headers.get("content-type")).toStartWith("application/json");
    const { openapi, paths } = (await response.json()) as { openapi: string; paths: object };
    expect(openapi).toStartWith("3.");
    for (const { name } of methods) expect(paths).toHaveProperty([`/api/${name}`, "post"]);
  });

  test("/asyncapi.json describes the socket with every event and method", async () => {
    const response = await fetch(`${server.url}/asyncapi.json`);
    expect(response.headers.get("content-type")).toStartWith("application/json");
    const text = await response.text();
    expect(JSON.parse(text)).toHaveProperty("asyncapi");
    for (const { socket, access } of methods) {
      expect(text.includes(`"${socket}"`)).toBe(access !== "service");
    }
    for (const event of ["hello", "messageNew", "messageDeleted", "typing", "chatRead"]) {
      expect(text).toContain(`events.${event}`);
    }
  });

  test("/docs is a page that names every operation", async () => {
    const response = await fetch(`${server.url}/docs`);
    expect(response.headers.get("content-type")).toStartWith("text/html");
    const text = await response.text();
    for (const { name } of methods) expect(text).toContain(name);
  });

  test("/ is a page", async () => {
    const response = await fetch(`${server.url}/`);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toStartWith("text/html");
  });
});

describe("web origins", () => {
  const preflight = (origin: string) =>
    fetch(`${server.url}/api/getMe`, {
      method: "OPTIONS",
      headers: {
        origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type",
      },
    });
  const call = (origin: string) =>
    fetch(`${server.url}/api/getMe`, {
      method: "POST",
      headers: { origin, authorization: `Bearer ${alice.token}` },
    });
  const upgrade = async (headers: Record<string, string>) => {
    await using socket = await RawSocket.open(server.url, `/api/ws?token=${alice.token}`, headers);
    return socket.answer?.status;
  };

  test.each([
    ["an allowed one", FRIEND],
    ["an allowed one on this machine", "http://localhost:3000"],
    ["that of the server", server.url],
  ])("may call if they are allowed: %s", async (_, origin) => {
    const asked = await preflight(origin);
    expect(asked.ok).toBe(true);
    expect(asked.headers.get("access-control-allow-origin")).toBe(origin);
    expect(asked.headers.get("access-control-allow-methods")).toContain("POST");
    expect(asked.headers.get("access-control-allow-headers")).toContain("authorization");
    expect(asked.headers.get("access-control-allow-headers")).toContain("content-type");
    const called = await call(origin);
    expect(called.status).toBe(200);
    expect(called.headers.get("access-control-allow-origin")).toBe(origin);
    expect(called.headers.get("vary")?.toLowerCase()).toContain("origin");
    expect(await upgrade({ origin })).toBe(101);
  });

  test.each([STRANGER, "null", `${FRIEND}.evil.com`, FRIEND.replace("https", "http"), "nonsense"])(
    "are refused if they are not allowed: %s",
    async (origin) => {
      expect((await preflight(origin)).headers.get("access-control-allow-origin")).toBeNull();
      expect((await call(origin)).headers.get("access-control-allow-origin")).toBeNull();
      expect(await upgrade({ origin })).toBe(403);
    },
  );

  test("do not matter for clients that are not web pages", async () => {
    expect(await upgrade({})).toBe(101);
    const { headers } = await fetch(`${server.url}/health`);
    expect(headers.get("access-control-allow-origin")).toBeNull();
  });

  test("may read failures and their request id", async () => {
    const response = await fetch(`${server.url}/api/getMe`, {
      method: "POST",
      headers: { origin: FRIEND },
    });
    expect(response.status).toBe(401);
    expect(response.headers.get("access-control-allow-origin")).toBe(FRIEND);
    expect(response.headers.get("access-control-expose-headers")).toContain("x-request-id");
  });
});

describe("a wrong value", () => {
  let starts = 0;

  /** Starts the server with these settings and returns what it prints. */
  async function refusal(env: Environment) {
    const folder = join(server.dataDir, `refused-${++starts}`);
    const child = spawnMain({ PORT: "0", PARLEY_DATA: folder, ...env });
    const timer = setTimeout(() => child.kill(), PATIENCE_MS);
    const [code, output, errors] = await Promise.all([
      child.exited,
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    clearTimeout(timer);
    return { code, output, sentence: errors.trim() };
  }

  const provider = { display_name: "M", protocol: "openai", model: "m" };
  const local = JSON.stringify({ m1: { ...provider, base_url: "file:///etc/passwd" } });
  const wrong: [string, string][] = [
    ["PORT", "eighty"],
    ["PORT", "65536"],
    ["HOST", "not a host"],
    ["PARLEY_SIGNUP", "maybe"],
    ["PARLEY_LIMITS", "{"],
    ["PARLEY_LIMITS", "[]"],
    ["PARLEY_LIMITS", '{"page_sizes": 5}'],
    ["PARLEY_LIMITS", '{"page_size": "5"}'],
    ["PARLEY_LIMITS", '{"frame_bytes": -1}'],
    ["PARLEY_LIMITS", '{"__proto__": 5}'],
    ["PARLEY_PROVIDERS", "/nowhere/providers.json"],
    ["PARLEY_PROVIDERS", '{"Claude": {}}'],
    ["PARLEY_PROVIDERS", local],
    ["PARLEY_OIDC_ISSUER", "not a url"],
    ["PARLEY_ORIGINS", "https://chat.example.com/path"],
    ["PARLEY_LOG", "loud"],
    ["PARLEY_SANDBOX", "perhaps"],
    ["PARLEY_MASTER_KEY", "c2hvcnQ="],
    ["PARLEY_DATA", "/dev/null/data"],
    ["DATABASE_URL", "mysql://localhost/parley"],
  ];

  const expectNamed = async (name: string, env: Environment) => {
    const { code, output, sentence } = await refusal(env);
    expect(code).not.toBe(0);
    expect(output).toBe("");
    expect(sentence).toContain(name);
    expect(sentence.split("\n")).toHaveLength(1);
  };

  test.concurrent.each(wrong)(
    "of %s stops the start with one sentence that names it: %s",
    (name, value) => expectNamed(name, { [name]: value }),
  );

  test("of PARLEY_OIDC_ISSUER is named if it is missing while a client is set", () =>
    expectNamed("PARLEY_OIDC_ISSUER", { PARLEY_OIDC_CLIENT_ID: "parley" }));

  test("of PARLEY_OIDC_AUDIENCE is named if it is missing while an issuer is set", () =>
    expectNamed("PARLEY_OIDC_AUDIENCE", { PARLEY_OIDC_ISSUER: "https://issuer.example.com" }));

  test("of PORT is named if the port is in use", () =>
    expectNamed("PORT", { PORT: new URL(server.url).port }));

  test("of PARLEY_DATA: a file in it that cannot be locked is named", async () => {
    const folder = mkdtempSync(join(tmpdir(), "parley-lock-"));
    try {
      writeFileSync(join(folder, "lock"), "nonsense ".repeat(1000));
      await expectNamed(`${join(folder, "lock")} cannot be locked`, { PARLEY_DATA: folder });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe("stopping", () => {
  test("closes sockets with 1001, keeps all messages, and exits with 0", async () => {
    await using stopped = await startServer();
    const person = await signUp(stopped.url, "lasting");
    const chat = await groupOf(person);
    await using socket = await person.connect();
    const sent = await say(person, chat, "hello");
    const code = await stopped.stop();
    await socket.until(() => socket.closed, "close");
    expect(socket.closed?.code).toBe(1001);
    expect(code).toBe(0);
    await stopped.restart();
    const back = new Person(stopped.url, person.token, person.account);
    await using _reconnected = await back.connect();
    expect(await back.call("getMessage", { message_id: sent.id })).toEqual(sent);
  });

  test("lets calls in progress finish", async () => {
    await using stopped = await startServer();
    const person = await signUp(stopped.url, "hasty");
    const chat = await groupOf(person);
    const sends = Array.from({ length: 50 }, () => say(person, chat, "hello"));
    await sends[0];
    const [code, ...outcomes] = await Promise.all([
      stopped.stop(),
      ...sends.map((send) => send.catch(() => null)),
    ]);
    expect(code).toBe(0);
    const acknowledged = outcomes.filter((outcome) => outcome !== null).map(({ id }) => id);
    await stopped.restart();
    const back = new Person(stopped.url, person.token, person.account);
    const { items } = await back.call("getChatHistory", { chat_id: chat.id, limit: 100 });
    const kept = items.map(({ id }) => id);
    expect(kept).toEqual(expect.arrayContaining(acknowledged));
  });
});

test("the data folder is private to its owner", () => {
  expect(statSync(server.dataDir).mode & 0o077).toBe(0);
});
