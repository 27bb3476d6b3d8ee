import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Access, type Operation, type OperationName, operations } from "@parley/protocol";
import { Backend, serviceKeySetting } from "@parley/testkit/backend.ts";
import { groupOf, type Person, people, post, RawSocket, say } from "@parley/testkit/client.ts";
import { externalAgent } from "@parley/testkit/external-agents.ts";
import { freePort } from "@parley/testkit/postgres.ts";
import { isFullRun, rounds } from "@parley/testkit/rounds.ts";
import { noRates, startServer, type TestServer } from "@parley/testkit/server.ts";
import { tool, toolsFolder } from "@parley/testkit/tools.ts";
import Ajv from "ajv";
import addFormats from "ajv-formats";

/**
 * Checks the OpenAPI and AsyncAPI documents with independent programs: the linters of their formats,
 * and a proxy that validates every call and every answer.
 */

const TOOLS = new URL("tools", import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), "parley-documents-"));
const file = (name: string) => join(folder, name);

/** The linters and the proxy take minutes to start on a busy machine. */
const SLOW_MS = 900_000;

let server: TestServer;
beforeAll(async () => {
  toolsFolder();
  server = await startServer({ ...noRates, ...serviceKeySetting() });
  for (const name of ["openapi.json", "asyncapi.json"]) {
    await Bun.write(file(name), await fetch(`${server.url}/${name}`));
  }
  const text = await Bun.file(file("asyncapi.json")).text();
  await Bun.write(file("asyncapi-flat.json"), withoutRepetition(text));
}, SLOW_MS);
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/**
 * The AsyncAPI document with nothing where a payload or a schema refers to one of its schemas. The checkers
 * resolve references and look at every schema again at each of its uses, which takes minutes for this
 * document. They still see each schema once, under its name. `reference.test.ts` finds schemas that are
 * missing or unused.
 */
function withoutRepetition(text: string): string {
  const { components, ...others } = JSON.parse(text) as AsyncApi;
  const names = new Set(Object.keys(components.schemas).map((name) => `${SCHEMAS}${name}`));
  const cut = (_key: string, value: { $ref?: string } | null) => {
    if (!value?.$ref || !names.has(value.$ref)) return value;
    const { $ref: _, ...rest } = value;
    return rest;
  };
  const messages = Object.entries(components.messages).map(([name, { payload, ...rest }]) => [
    name,
    { ...rest, payload: JSON.parse(JSON.stringify(payload), cut) },
  ]);
  const schemas = JSON.parse(JSON.stringify(components.schemas), cut);
  const flat = { ...components, messages: Object.fromEntries(messages), schemas };
  return JSON.stringify({ ...others, components: flat });
}

const SCHEMAS = "#/components/schemas/";

interface AsyncApi {
  asyncapi: string;
  components: {
    messages: Record<
      string,
      { payload: { $ref: string }; examples?: { payload: { params?: object } }[] }
    >;
    schemas: Record<string, { properties?: object }>;
  };
}

async function run(...command: string[]): Promise<{ code: number; output: string }> {
  const child = Bun.spawn(command, { cwd: folder, stdout: "pipe", stderr: "pipe" });
  const [output, errors] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { code: await child.exited, output: output || errors };
}

describe("the linters", () => {
  test(
    "Redocly finds nothing in OpenAPI",
    async () => {
      const config = ["--config", join(TOOLS, "redocly.yaml"), "--format=json"];
      const { output } = await run(tool("redocly"), "lint", "openapi.json", ...config);
      expect(JSON.parse(output).problems).toEqual([]);
    },
    SLOW_MS,
  );

  // It takes a quarter of a minute of CPU time, for documents that few changes touch. Redocly and the proxy
  // check the OpenAPI document in every run, and the schema of the format checks the AsyncAPI document.
  test.if(isFullRun)(
    "Spectral finds nothing in OpenAPI and AsyncAPI",
    async () => {
      const rules = ["--ruleset", join(TOOLS, "spectral.yaml"), "--fail-severity=hint"];
      const result = await run(
        tool("spectral"),
        "lint",
        "openapi.json",
        "asyncapi-flat.json",
        ...rules,
      );
      expect(result).toMatchObject({ code: 0 });
    },
    SLOW_MS,
  );
});

/** Operations that a service key calls. */
const privileged = Object.values<Operation>(operations)
  .filter(({ access }) => access === "operator" || access === "service")
  .map(({ name }) => name);

interface Schema {
  properties?: Record<string, object>;
}
interface Call {
  operationId: string;
  security?: unknown[];
  requestBody: { content: { "application/json": { schema: Schema; example?: object } } };
}

/** Useful values of fields, by name. */
type Known = Record<string, unknown>;

/** Values that are valid for some fields only. */
const odd = [-1, { a: 1 }, "", "x".repeat(2000), [], Bun.randomUUIDv7()].slice(
  0,
  rounds({ few: 2, all: 6 }),
);

describe("a proxy that validates every call and every answer against OpenAPI", () => {
  let proxy: { url: string; stop(): Promise<unknown> };
  let calls: Call[];

  beforeAll(async () => {
    const document = await Bun.file(file("openapi.json")).json();
    const paths = Object.entries<{ post?: Call }>(document.paths);
    const posts = paths.filter(([path]) => path.startsWith("/api/")).map(([, { post }]) => post);
    calls = posts.filter((call) => call !== undefined);
    proxy = await startProxy();
  }, SLOW_MS);
  afterAll(() => proxy.stop());

  async function startProxy() {
    const port = await freePort();
    const options = ["--errors", "--port", `${port}`, "--verboseLevel", "error"];
    const child = Bun.spawn([tool("prism"), "proxy", "openapi.json", server.url, ...options], {
      cwd: folder,
      stdout: "ignore",
      stderr: "inherit",
    });
    const url = `http://127.0.0.1:${port}`;
    while (child.exitCode === null) {
      const response = await fetch(`${url}/health`).catch(() => null);
      if (response?.ok) break;
      await Bun.sleep(50);
    }
    return {
      url,
      stop: () => {
        child.kill();
        return child.exited;
      },
    };
  }

  async function through(name: string, input: unknown, token: string | undefined) {
    const response = await fetch(`${proxy.url}/api/${name}`, {
      method: "POST",
      headers: {
        ...(input !== undefined && { "content-type": "application/json" }),
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      ...(input !== undefined && { body: JSON.stringify(input) }),
    });
    return { status: response.status, body: await response.json() };
  }

  /** The proxy and the server agree whether the call is valid, and the proxy accepts the answer. */
  async function agree(name: string, input: unknown, token: string | undefined): Promise<number> {
    const { status, body } = await through(name, input, token);
    const [, problem] = /^https:\/\/stoplight.io\/prism\/errors#(\w+)$/.exec(body.type ?? "") ?? [];
    if (problem === undefined) return status;
    const what = { name, input, problem, told: body.validation ?? body.detail };
    const direct = await post(server.url, name, input, token);
    const { status: answered } = direct;
    const refusals = { UNPROCESSABLE_ENTITY: [400, 429], UNAUTHORIZED: [401, 429] }[problem];
    const isRefused = refusals?.includes(answered) === true;
    expect({ ...what, answered, isRefused }).toEqual({ ...what, answered, isRefused: true });
    return answered;
  }

  /** Alice, who is in a conversation with a message of hers, and a person who is not in it. */
  async function setUp([alice, bob, carol]: readonly [Person, Person, Person]) {
    const chat = await groupOf(alice, bob);
    const message = await say(alice, chat, "hello");
    const known: Known = {
      chat_id: chat.id,
      message_id: message.id,
      message_ids: [message.id],
      username: bob.username,
      usernames: [bob.username],
      agent_username: `${alice.username}:claude`,
      session_id: Bun.randomUUIDv7(),
      known: { [chat.id]: 0 },
      content: `hello @${bob.username}`,
    };
    return { alice, carol, known };
  }

  const inputOf = ({ requestBody }: Call) => requestBody.content["application/json"];

  /** The example of the document, with useful values in the known fields. */
  function exampleFor(call: Call, known: Known): Record<string, unknown> {
    const { example = {} } = inputOf(call);
    const given = Object.entries(example).map(([name, value]) => [name, known[name] ?? value]);
    return Object.fromEntries(given);
  }

  function* variations(call: Call, known: Known) {
    const example = exampleFor(call, known);
    for (const name of Object.keys(inputOf(call).schema.properties ?? {})) {
      if (name in known && !(name in example)) yield { ...example, [name]: known[name] };
      for (const value of odd) yield { ...example, [name]: value };
      const { [name]: _, ...rest } = example;
      yield rest;
    }
  }

  const statuses = new Map<number, number>();
  const count = async (answer: Promise<number>) => {
    const status = await answer;
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  };
  let persons: readonly [Person, Person, Person] | null = null;

  /** Alice, Bob and Carol. Some operations end sessions, or suspend or erase people. */
  async function signedIn(): Promise<readonly [Person, Person, Person]> {
    const states = (persons ?? []).map(({ token }) => post(server.url, "getMe", {}, token));
    const isUsable = (await Promise.all(states)).every(({ status }) => status === 200);
    if (!persons || !isUsable) persons = await people(server.url, "alice", "bob", "carol");
    return persons;
  }

  for (const name of Object.keys(operations)) {
    test(
      `reports nothing for ${name}, on success and on failure`,
      async () => {
        const call = calls.find(({ operationId }) => operationId === name);
        if (!call) throw new Error(`${name} is not described`);
        const { key } = new Backend(server.url);
        const { alice, carol, known } = await setUp(await signedIn());
        const access: Access = operations[name as OperationName].access;
        const program = access === "agent" ? (await externalAgent(alice)).agent : null;
        const isForService = privileged.includes(name);
        const token = (person: Person) => {
          if (call.security?.length === 0) return undefined;
          return isForService ? key : (program ?? person).token;
        };
        const example = exampleFor(call, known);
        await count(agree(name, example, "ply_wrong"));
        await count(agree(name, example, undefined));
        await count(agree(name, example, token(carol)));
        await count(agree(name, exampleFor(call, {}), token(alice)));
        for (const input of variations(call, known)) await count(agree(name, input, token(alice)));
        await count(agree(name, undefined, token(alice)));
        await count(agree(name, example, token(alice)));
      },
      SLOW_MS,
    );
  }

  test("has seen answers of every kind, and no internal error", () => {
    const total = [...statuses.values()].reduce((sum, each) => sum + each, 0);
    expect(total).toBeGreaterThan(500);
    for (const status of [200, 400, 401, 403, 404]) expect([...statuses.keys()]).toContain(status);
    expect(statuses.has(500)).toBe(false);
  });
});

// The parser takes many seconds of CPU time, for a document that few changes touch.
describe.if(isFullRun)("AsyncAPI, as parsed by the official parser,", () => {
  interface Parsed {
    diagnostics: { code: string; severity: number }[];
    servers: { host: string; protocol: string }[];
    messages: string[];
  }
  let parsed: Parsed;
  let document: AsyncApi;
  const ajv = new Ajv({ strict: false });
  addFormats(ajv);

  beforeAll(async () => {
    const script = file("parse.mjs");
    await Bun.write(script, parserScript(join(toolsFolder(), "@asyncapi/parser/cjs/index.js")));
    const node = Bun.which("node") ?? process.execPath;
    parsed = JSON.parse((await run(node, script, "asyncapi-flat.json")).output);
    document = await Bun.file(file("asyncapi.json")).json();
    ajv.addSchema(document, "asyncapi.json");
  }, SLOW_MS);

  test("is valid, and has the address at which it was fetched", () => {
    const isLatest = ({ code }: { code: string }) => code === "asyncapi-latest-version";
    expect(parsed.diagnostics.filter((each) => !isLatest(each))).toEqual([]);
    expect(parsed.servers).toEqual([{ host: new URL(server.url).host, protocol: "ws" }]);
    const { messages } = document.components;
    expect(parsed.messages.toSorted()).toEqual(Object.keys(messages).toSorted());
  });

  test("gives every payload a name", () => {
    const payloads = Object.values(document.components.messages);
    expect(payloads.filter(({ payload }) => payload.$ref === undefined)).toEqual([]);
  });

  function check(name: string, frame: unknown): void {
    const validate = ajv.getSchema(`asyncapi.json#/components/messages/${name}/payload`);
    validate?.(frame);
    expect({ name, frame, errors: validate?.errors ?? null }).toEqual({
      name,
      frame,
      errors: null,
    });
    expect(validate).toBeDefined();
  }

  function fieldsOf(name: string): string[] {
    const { $ref = "" } = document.components.messages[name]?.payload ?? {};
    const schema = document.components.schemas[$ref.replace(SCHEMAS, "")];
    return Object.keys(schema?.properties ?? {});
  }

  test("describes every frame of a conversation", async () => {
    const [alice, bob] = await people(server.url, "alice", "bob");
    await alice.call("setAgentKey", { provider: "claude", api_key: "sandbox-0123456789" });
    await using socket = await bob.connect();
    const chat = await groupOf(alice, bob);
    await alice.call("addGroupAgent", {
      chat_id: chat.id,
      agent_username: `${alice.username}:claude`,
    });
    const { id } = await say(alice, chat, `@${alice.username}:claude hello`);
    const { params: answer } = await socket.event("events.messageComplete");
    await alice.call("addReaction", { message_id: id, emoji: "👍" });
    await alice.call("removeReaction", { message_id: id, emoji: "👍" });
    await alice.call("editMessage", { message_id: id, content: "edited" });
    await alice.call("sendChatAction", { chat_id: chat.id, action: "typing" });
    await alice.call("readChat", { chat_id: chat.id, seq: 1 });
    await alice.call("updateMe", { display_name: "Alice" });
    await bob.call("deleteMessagesForMe", { chat_id: chat.id, message_ids: [answer.id] });
    await socket.event("events.messageDeleted", ({ ids }) => ids.includes(answer.id));
    await alice.call("deleteMessages", { chat_id: chat.id, message_ids: [id] });
    await socket.event("events.messageDeleted", ({ ids }) => ids.includes(id));
    const seen = new Set(socket.events.map(({ method }) => method));
    expect(seen.size).toBeGreaterThan(10);
    for (const frame of socket.events) {
      check(frame.method, frame);
      expect(fieldsOf(frame.method)).toEqual(expect.arrayContaining(Object.keys(frame)));
    }
  });

  test("describes calls and their replies", async () => {
    const [alice, bob] = await people(server.url, "alice", "bob");
    const chat = await groupOf(alice, bob);
    const { asyncapi, components } = document;
    expect(asyncapi).toBe("3.0.0");
    await using socket = await RawSocket.connect(alice);
    const ask = async (call: { id: string }) => {
      socket.send(JSON.stringify(call));
      const isReply = (text: string) => JSON.parse(text).id === call.id;
      return JSON.parse(
        await socket.until(() => socket.texts.find(isReply), `a reply to ${call.id}`),
      );
    };
    let replies = 0;
    for (const [name, { examples }] of Object.entries(components.messages)) {
      const [example] = examples ?? [];
      const isCall = example && !/^(events|reply)\.|\.result$|^auth\.logout$/.test(name);
      if (!isCall) continue;
      const { params = {} } = example.payload;
      const here = "conversation_id" in params && { conversation_id: chat.id };
      const call = { ...example.payload, params: { ...params, ...here }, id: name };
      check(name, call);
      const reply = await ask(call);
      const success = "result" in reply ? `${name}.result` : "reply.done";
      check(reply.ok ? success : "reply.failed", reply);
      replies++;
    }
    expect(replies).toBeGreaterThan(30);
  });
});

const parserScript = (parser: string) => `
  import { readFileSync } from "node:fs";
  import parser from ${JSON.stringify(parser)};

  const { document, diagnostics } = await new parser.Parser().parse(readFileSync(process.argv[2], "utf8"));
  const messages = document.allMessages().map((message) => message.id());
  const servers = document.servers().all().map((each) => ({ host: each.host(), protocol: each.protocol() }));
  const told = diagnostics.map(({ code, severity }) => ({ code, severity }));
  process.stdout.write(JSON.stringify({ diagnostics: told, servers, messages }));
`;
