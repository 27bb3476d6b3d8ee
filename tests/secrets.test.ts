import { describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Conversation } from "@parley/protocol";
import {
  agentOf,
  answerTo,
  groupOf,
  Person,
  replyTo,
  Socket,
  say,
  signUp,
} from "@parley/testkit/client.ts";
import { databaseOf } from "@parley/testkit/database.ts";
import {
  answers,
  cutsAfterHead,
  cutsBeforeHead,
  endsWith,
} from "@parley/testkit/provider-responders.ts";
import { providersAt, type Responder } from "@parley/testkit/provider-server.ts";
import { noRates, runMain, startServer, type TestServer } from "@parley/testkit/server.ts";
import { keyOf, startSharedProvider } from "@parley/testkit/shared-provider.ts";
import { type ReceivedMessage, ToolServer } from "@parley/testkit/tool-server.ts";

/** A secret value that cannot occur by chance in any encoding. */
const marker = (name: string) => `${name}-${Bun.randomUUIDv7().replaceAll("-", "")}-${name}`;

/** Common encodings of a secret. */
function spellings(secret: string): Buffer[] {
  const bytes = Buffer.from(secret);
  // Base64 depends on the offset modulo three: the part that is the same, for each offset.
  const base64 = [0, 1, 2].map((shift) =>
    Buffer.concat([Buffer.alloc(shift), bytes])
      .toString("base64")
      .slice(shift === 0 ? 0 : 4, -4),
  );
  return [
    bytes,
    Buffer.from(secret, "utf16le"),
    Buffer.from(bytes.toString("hex")),
    ...base64.flatMap((text) => [
      Buffer.from(text),
      Buffer.from(text.replaceAll("+", "-").replaceAll("/", "_")),
    ]),
  ];
}

const holds = (haystack: Buffer, secret: string) =>
  spellings(secret).some((spelling) => haystack.includes(spelling));

/** Every file in a folder that contains the secret in any encoding. */
const filesHolding = (folder: string, secret: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => holds(readFileSync(path), secret));

test("the search finds a secret in every encoding", () => {
  const secret = marker("key");
  for (const spelling of spellings(secret)) {
    expect(holds(Buffer.concat([Buffer.from("before "), spelling]), secret)).toBe(true);
  }
  for (const padding of ["", "x", "xy"]) {
    const text = Buffer.from(`${padding}${secret} and more`).toString("base64");
    expect(holds(Buffer.from(text), secret)).toBe(true);
  }
  expect(holds(Buffer.from(marker("key")), secret)).toBe(false);
});

/** Records every byte that a server sends, for the search. */
class Recorder {
  /** Answers to sign-ins, which contain a token legitimately. */
  readonly signIns: string[] = [];
  readonly replies: string[] = [];
  private readonly sockets: Socket[] = [];
  private readonly outputs: string[] = [];
  readonly server: TestServer;

  constructor(server: TestServer) {
    this.server = server;
  }

  async call(name: string, input: unknown, token?: string): Promise<{ result?: unknown }> {
    const response = await fetch(`${this.server.url}/api/${name}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(token && { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(input),
    });
    const text = await response.text();
    const kept = JSON.stringify([...response.headers]) + text;
    (["signUp", "signIn"].includes(name) && response.ok ? this.signIns : this.replies).push(kept);
    return JSON.parse(text);
  }

  async page(path: string): Promise<void> {
    const response = await fetch(this.server.url + path);
    this.replies.push(JSON.stringify([...response.headers]) + (await response.text()));
  }

  async connect(token: string): Promise<Socket> {
    const socket = await Socket.open(this.server.url, token);
    this.sockets.push(socket);
    return socket;
  }

  /** Keeps the output of a process that is about to end. */
  async restart(end: () => Promise<unknown>): Promise<void> {
    await end();
    this.outputs.push(this.server.output());
    await this.server.restart();
  }

  /** Everything except the answers to sign-ins. */
  everything(): Buffer {
    const received = this.sockets.map(({ events, replies }) => JSON.stringify([events, replies]));
    const printed = [...this.outputs, this.server.output()];
    return Buffer.from([...this.replies, ...received, ...printed].join("\n"));
  }
}

/** A provider that repeats the key it received in every part of an answer. */
const tells = (status: number): Responder => {
  return async (exchange) => {
    const key = keyOf(exchange.request);
    await exchange.head(status, { "content-type": "application/json", "x-request-id": key });
    const message = `Incorrect API key provided: ${key}. Bearer ${key}`;
    await exchange.write(exchange.frames.errorBody(key, message));
    await exchange.end();
  };
};
const tellsElsewhere: Responder = async (exchange) => {
  await exchange.head(307, { location: `http://127.0.0.1:1/?key=${keyOf(exchange.request)}` });
  await exchange.end();
};
const streams =
  (frame: (key: string) => string, ...words: string[]): Responder =>
  async (exchange) => {
    const { head, write, frames, request, end } = exchange;
    await head(200);
    await write(frames.begin);
    for (const word of words) await write(frames.text(word));
    await write(frame(keyOf(request)));
    await end();
  };
const garbage = (key: string) => `data: {"${key}": ${key}\n\n`;
const report = (key: string) =>
  `data: ${JSON.stringify({ type: "error", error: { type: key, message: key, code: key } })}\n\n`;
const says: Responder = answers("All ", "is well.");
const stalls: Responder = async (exchange) => {
  await exchange.head(200);
  await exchange.write(exchange.frames.begin + exchange.frames.text("Half a"));
  await exchange.stall();
};

const scenes: Record<string, Responder> = {
  ...Object.fromEntries(
    [400, 401, 402, 403, 404, 413, 429, 500, 503, 529].map((status) => [
      `s${status}`,
      tells(status),
    ]),
  ),
  redirects: tellsElsewhere,
  garbage: streams(garbage),
  garbageLater: streams(garbage, "Half a"),
  page: streams((key) => `<html>${key}</html>\n\n`),
  reports: streams(report),
  reportsLater: streams(report, "Half a"),
  cut: cutsBeforeHead,
  cutLater: cutsAfterHead,
  refuses: endsWith("refused"),
  says,
  stalls,
};

/** Responds as the last message of the conversation asks. */
const asAsked: Responder = (exchange) => {
  const text = JSON.stringify(exchange.request.body.messages);
  const name = [...text.matchAll(/#(\w+)/g)].at(-1)?.[1] ?? "";
  return scenes[name]?.(exchange);
};

/** A tool server that repeats its token wherever it answers badly. Its address says how it answers. */
function tellsToken({ message, headers, url }: ReceivedMessage): Response | undefined {
  const token = headers.get("authorization") ?? "";
  const how = new URL(url).searchParams.get("case") ?? "answers";
  const { id } = message;
  const status = Number(/^s(\d+)$/.exec(how)?.[1] ?? 0);
  if (status > 0) {
    const challenge = `Bearer error="${token}", error_description="${token}"`;
    return new Response(token, { status, headers: { "www-authenticate": challenge } });
  }
  if (how === "nonsense") return new Response(`{"${token}`, JSON_HEADERS);
  if (how !== "error") return undefined;
  return Response.json({
    jsonrpc: "2.0",
    id,
    error: { code: -32000, message: token, data: token },
  });
}

const JSON_HEADERS = { headers: { "content-type": "application/json" } };

/** Has agents answer in every way, with both protocols. */
async function askEverything(recorder: Recorder, owner: Person, socket: Socket): Promise<void> {
  const { token } = owner;
  for (const provider of ["claude", "gpt"]) {
    const asked = Object.keys(scenes).map(async (name) => {
      const chat = await groupOf(owner, { username: agentOf(owner, provider) });
      const trigger = await say(owner, chat, `@${agentOf(owner, provider)} #${name}`);
      if (name === "stalls") return;
      const { id } = await answerTo(socket, trigger);
      for (const operation of ["getMessage", "getTurn"]) {
        await recorder.call(operation, { message_id: id }, token);
      }
      await recorder.call("getUpdates", { chat_id: chat.id, since_seq: 0 }, token);
    });
    await Promise.all(asked);
  }
}

test("no key, password or token is found on disk, in any output, event, reply or page", async () => {
  await using sharedProvider = await startSharedProvider();
  const password = marker("password");
  const keys = {
    claude: marker("claude-key"),
    gpt: marker("gpt-key"),
    old: marker("old-key"),
    operator: marker("operator-key"),
  };
  const toolTokens = { tools: marker("tool-token"), offered: marker("offered-tool-token") };
  await using tools = new ToolServer();
  // It repeats the token that it received in every part of an answer.
  tools.accepts = () => true;
  tools.answer = tellsToken;
  const folder = mkdtempSync(join(tmpdir(), "parley-operator-key-"));
  using _cleanup = { [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
  const api_key_file = join(folder, "key");
  writeFileSync(api_key_file, keys.operator);
  await using server = await startServer({
    ...noRates,
    ...providersAt(sharedProvider.url, { api_key_file, daily_tokens_per_user: 10_000_000 }),
    PARLEY_LOG: "trace",
    PARLEY_PRIVATE_ADDRESSES: "allow",
    PARLEY_TOOL_SERVERS: JSON.stringify([
      { name: "offered", url: tools.url, token: toolTokens.offered },
    ]),
  });
  const recorder = new Recorder(server);
  for (const key of Object.values(keys)) sharedProvider.respond(key, asAsked);

  // Sign-ins that succeed and fail.
  const username = `owner_${process.pid}`;
  await recorder.call("signUp", { username, password });
  await recorder.call("signUp", { username, password });
  await recorder.call("signUp", { username: "?", password });
  await recorder.call("signIn", { username: "nobody_at_all", password });
  await recorder.call("signIn", { username, password: `${password}x` });
  await recorder.call("signIn", { username: password, password });
  await recorder.call("signIn", { username, password: [password] });
  await recorder.call("signIn", { username, password });
  const tokens = recorder.signIns.map(
    (text) => /"access_token":"([^"]+)"/.exec(text)?.[1] ?? "no token",
  );
  const [token = "", other = ""] = tokens;
  expect(tokens).toHaveLength(2);

  // The operator's key, before a key is stored.
  const account = { username, kind: "human", display_name: username, version: 0 } as const;
  let owner = new Person(server.url, token, account);
  await using socket = await recorder.connect(token);
  await askEverything(recorder, owner, socket);
  for (const provider of ["claude", "gpt"]) {
    await recorder.call("testAgentKey", { provider }, token);
  }
  await recorder.call("getMyAgents", {}, token);

  // Valid and invalid keys.
  const api_key = keys.claude;
  await recorder.call("setAgentKey", { provider: "claude", api_key: keys.old }, token);
  await recorder.call("setAgentKey", { provider: "claude", api_key: `${keys.claude}\n` }, token);
  await recorder.call("setAgentKey", { provider: "gpt", api_key: keys.gpt }, other);
  const bad = [
    { provider: "nobody", api_key },
    { provider: api_key, api_key },
    { provider: "claude", api_key: `${api_key} and more` },
    { provider: "claude", api_key: `${api_key}\n${api_key}` },
    { provider: "claude", api_key: api_key.repeat(100) },
    { provider: "claude", api_key: [api_key] },
    { provider: "claude", api_key: { [api_key]: api_key } },
    { provider: ["claude"], api_key },
  ];
  for (const input of bad) {
    await recorder.call("setAgentKey", input, token);
    await socket.reply("agents.set_key", input);
  }
  socket.send(`{"method":"agents.set_key","params":{"provider":"gpt","api_key":"${api_key}"`);
  await recorder.call("getMyAgents", {}, `${token}x`);

  // Tool servers that answer, refuse and fail, with their tokens in what they say.
  const { tools: toolToken } = toolTokens;
  for (const name of ["answers", "s401", "s403", "s500", "nonsense", "error"]) {
    const input = { name, url: `${tools.url}?case=${name}`, token: toolToken };
    const { result } = await recorder.call("addToolServer", input, token);
    const { id: server_id } = result as { id: string };
    await recorder.call("refreshToolServer", { server_id }, token);
    await recorder.call("authorizeToolServer", { server_id }, token);
    await recorder.call("updateToolServer", { server_id, token: toolToken }, token);
    await recorder.call("updateToolServer", { server_id, token: [toolToken] }, token);
  }
  for (const input of [
    { name: "bad", url: "nonsense", token: toolToken },
    { name: toolToken.repeat(10), url: tools.url, token: toolToken },
    { name: "bad", url: tools.url, token: `${toolToken} and more` },
    { name: "bad", url: tools.url, token: [toolToken] },
  ]) {
    await recorder.call("addToolServer", input, token);
    await socket.reply("tools.add_server", input);
  }
  await recorder.call("getToolServers", {}, token);
  const sentTokens = new Set(tools.received.map(({ headers }) => headers.get("authorization")));
  for (const each of Object.values(toolTokens)) expect(sentTokens).toContain(`Bearer ${each}`);

  // Turns with the owner's keys.
  await askEverything(recorder, owner, socket);
  for (const operation of ["getMyAgents", "getAgentUsage", "getMe", "getSessions", "getChats"]) {
    await recorder.call(operation, {}, token);
  }
  const calls = sharedProvider.requests.map(keyOf);
  for (const key of [keys.claude, keys.gpt, keys.operator]) {
    expect(calls.filter((each) => each === key).length).toBeGreaterThan(20);
  }
  expect(filesHolding(server.dataDir, keys.claude)).toEqual([]);

  // A crash with calls in progress, and a graceful stop.
  const words = async (person: Person) => {
    await using listener = await recorder.connect(token);
    const chat = await groupOf(person, { username: agentOf(person) });
    return (await answerTo(listener, await say(person, chat, `@${agentOf(person)} #says`))).content;
  };
  await recorder.restart(() => server.kill());
  owner = owner.at(server.url);
  expect(await words(owner)).toBe("All is well.");
  await recorder.restart(() => server.stop());
  owner = owner.at(server.url);
  expect(await words(owner)).toBe("All is well.");
  await recorder.call("removeAgentKey", { provider: "gpt" }, token);
  await recorder.call("revokeSession", { session_id: token }, token);
  await recorder.call("signOut", {}, other);
  const pages = ["/metrics", "/docs", "/openapi.json", "/asyncapi.json", "/health", "/ready", "/"];
  for (const path of [...pages, "/api/limits", `/api/ws?token=${token}`]) await recorder.page(path);

  const secrets = { password, ...keys, ...toolTokens, token, other };
  const everything = recorder.everything();
  const signIns = Buffer.from(recorder.signIns.join("\n"));
  const found = Object.entries(secrets).flatMap(([name, secret]) => [
    ...filesHolding(server.dataDir, secret).map((path) => `${name} in ${path}`),
    ...(holds(everything, secret) ? [`${name} in what was said or printed`] : []),
    ...(name !== "token" && name !== "other" && holds(signIns, secret)
      ? [`${name} in an answer to signing in`]
      : []),
  ]);
  expect(found).toEqual([]);
  // Public data is found, so the search works.
  expect(holds(everything, `••••••••${keys.claude.slice(-4)}`)).toBe(true);
  expect(filesHolding(server.dataDir, "All is well.")).not.toEqual([]);
});

describe("rotation of the master key", () => {
  interface Sealed {
    provider: string;
    sealed: string;
  }

  const sealedIn = (dataDir: string): Sealed[] => {
    using db = databaseOf({ dataDir });
    return db
      .query<Sealed, []>("SELECT provider, sealed FROM agent_keys ORDER BY owner_id, provider")
      .all();
  };
  const masterOf = ({ sealed }: Sealed) => sealed.split(".")[1] ?? "";

  async function rotate(env: Record<string, string>): Promise<string> {
    const { code, stdout, stderr } = await runMain(["keys", "rotate"], env);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    return stdout;
  }

  /** A person with keys for both agents, and a conversation with each. */
  async function ownerOf(server: TestServer, keys: Record<string, string>) {
    const owner = await signUp(server.url, "owner");
    const chats: Record<string, Conversation> = {};
    for (const [provider, api_key] of Object.entries(keys)) {
      await owner.call("setAgentKey", { provider, api_key });
      chats[provider] = await owner.call("startChat", { usernames: [agentOf(owner, provider)] });
    }
    const asks = async (provider: string, at = server) => {
      const person = owner.at(at.url);
      await using socket = await person.connect();
      const trigger = await say(person, chats[provider] as Conversation, "#says");
      return (await answerTo(socket, trigger)).content;
    };
    return { owner, asks, chats };
  }

  const newKeys = () => ({ claude: marker("claude-key"), gpt: marker("gpt-key") });
  const environment = (url: string) => ({ ...noRates, ...providersAt(url), PARLEY_LOG: "trace" });

  test("reseals every key while the server runs and keeps answering", async () => {
    await using sharedProvider = await startSharedProvider();
    await using server = await startServer(environment(sharedProvider.url));
    const keys = newKeys();
    for (const key of Object.values(keys)) sharedProvider.respond(key, asAsked);
    const { owner, asks, chats } = await ownerOf(server, keys);
    expect(await asks("claude")).toBe("All is well.");
    await using socket = await owner.connect();
    const streaming = await say(owner, chats.gpt as Conversation, "#stalls");
    await replyTo(socket, streaming);
    const before = sealedIn(server.dataDir);

    const printed = await rotate({ PARLEY_DATA: server.dataDir });
    expect(printed).toStartWith("Sealed 2 keys");
    const after = sealedIn(server.dataDir);
    for (const [place, { sealed }] of after.entries()) {
      expect(sealed).not.toBe(before[place]?.sealed as string);
      expect(masterOf(after[place] as Sealed)).not.toBe(masterOf(before[place] as Sealed));
    }
    expect(statSync(join(server.dataDir, "master.key")).mode & 0o777).toBe(0o600);
    const answer = await owner.call("getMessage", {
      message_id: (await replyTo(socket, streaming)).id,
    });
    expect(answer.finalized_at).toBeNull();
    await owner.call("stopAgentTurn", { message_id: answer.id });
    for (const provider of ["claude", "gpt"]) expect(await asks(provider)).toBe("All is well.");

    // New keys are sealed with the new master key.
    const another = marker("another-key");
    sharedProvider.respond(another, asAsked);
    await owner.call("setAgentKey", { provider: "gpt", api_key: another });
    expect(sealedIn(server.dataDir).map(masterOf)).toEqual(after.map(masterOf));
    expect(await asks("gpt")).toBe("All is well.");

    // Once more, across a restart.
    await rotate({ PARLEY_DATA: server.dataDir });
    expect(await asks("claude")).toBe("All is well.");
    await server.kill();
    await server.restart();
    for (const provider of ["claude", "gpt"]) expect(await asks(provider)).toBe("All is well.");
    for (const secret of [...Object.values(keys), another]) {
      expect(filesHolding(server.dataDir, secret)).toEqual([]);
      expect(holds(Buffer.from(printed + server.output()), secret)).toBe(false);
    }
  });

  test("loses no key that is stored during the rotation", async () => {
    await using sharedProvider = await startSharedProvider();
    await using server = await startServer(environment(sharedProvider.url));
    const { owner, asks } = await ownerOf(server, newKeys());
    let rotating = true;
    const rotations = (async () => {
      for (let times = 0; times < 2; times++) await rotate({ PARLEY_DATA: server.dataDir });
      rotating = false;
    })();
    let stored = 0;
    while (rotating) {
      const api_key = marker(`key-${stored++}`);
      sharedProvider.respond(api_key, asAsked);
      await owner.call("setAgentKey", { provider: "claude", api_key });
      expect(await asks("claude")).toBe("All is well.");
      expect(sharedProvider.calls(api_key)).toHaveLength(1);
    }
    await rotations;
    expect(stored).toBeGreaterThan(1);
  });

  test("replaces a configured key without downtime", async () => {
    await using sharedProvider = await startSharedProvider();
    const master = () => Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64");
    const [old, fresh] = [master(), master()];
    const env = environment(sharedProvider.url);
    await using first = await startServer({ ...env, PARLEY_MASTER_KEY: old });
    const keys = newKeys();
    for (const key of Object.values(keys)) sharedProvider.respond(key, asAsked);
    const { asks } = await ownerOf(first, keys);
    expect(await asks("claude")).toBe("All is well.");
    const PARLEY_DATA = first.dataDir;
    expect(readdirSync(PARLEY_DATA)).not.toContain("master.key");
    await first.stop();

    const both = { PARLEY_DATA, PARLEY_MASTER_KEY: `${fresh},${old}` };
    await using second = await startServer({ ...env, ...both });
    expect(await asks("claude", second)).toBe("All is well.");
    const before = sealedIn(PARLEY_DATA);
    expect(await rotate(both)).toStartWith("Sealed 2 keys");
    const after = sealedIn(PARLEY_DATA);
    expect(new Set([...before, ...after].map(masterOf)).size).toBe(2);
    for (const provider of ["claude", "gpt"]) {
      expect(await asks(provider, second)).toBe("All is well.");
    }
    expect(await rotate(both)).toStartWith("Sealed 0 keys");
    expect(sealedIn(PARLEY_DATA)).toEqual(after);
    await second.stop();

    await using third = await startServer({ ...env, PARLEY_DATA, PARLEY_MASTER_KEY: fresh });
    for (const provider of ["claude", "gpt"]) {
      expect(await asks(provider, third)).toBe("All is well.");
    }
    await third.stop();

    // Without the key that sealed them nothing opens, and the refusal of the start reveals nothing.
    const refused = await runMain([], { ...env, PARLEY_DATA, PARLEY_MASTER_KEY: old });
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toStartWith("PARLEY_MASTER_KEY does not open");
    // What another key has sealed does not open either, and the rest does.
    using db = databaseOf({ dataDir: PARLEY_DATA });
    const older = before.find(({ provider }) => provider === "claude") as Sealed;
    db.run("UPDATE agent_keys SET sealed = ? WHERE provider = 'claude'", [older.sealed]);
    await using fourth = await startServer({ ...env, PARLEY_DATA, PARLEY_MASTER_KEY: fresh });
    const calls = sharedProvider.requests.length;
    expect(await asks("claude", fourth)).toBe(
      "The stored API key cannot be opened here. Store it again.",
    );
    expect(sharedProvider.requests).toHaveLength(calls);
    expect(await asks("gpt", fourth)).toBe("All is well.");
    for (const secret of [...Object.values(keys), old, fresh]) {
      const outputs = [first, second, third, fourth].map(({ output }) => output());
      for (const output of [...outputs, refused.stderr]) {
        expect(holds(Buffer.from(output), secret)).toBe(false);
      }
      expect(filesHolding(PARLEY_DATA, secret)).toEqual([]);
    }
  });
});
