import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { schemas as asyncApiSchemas } from "@asyncapi/specs";
import { closeCodes, errorStatus, events, operation, operations } from "@parley/protocol";
import { Validator } from "@seriousme/openapi-schema-validator";
import Ajv from "ajv";
import Ajv2020 from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { z } from "zod";
import { readConfig } from "../src/config/config.ts";
import { asyncApi } from "../src/transport/reference/asyncapi.ts";
import { operationBlock } from "../src/transport/reference/blocks.ts";
import {
  allErrors,
  allEvents,
  allOperations,
  httpErrors,
  socketOperations,
} from "../src/transport/reference/contract.ts";
import { inputExample } from "../src/transport/reference/examples.ts";
import { pretty, render, table } from "../src/transport/reference/markdown.ts";
import { openApi } from "../src/transport/reference/openapi.ts";
import { referencePage, referencePolicy } from "../src/transport/reference/page.ts";
import { createSchemaBook, type Schema, socketParams } from "../src/transport/reference/schemas.ts";

interface Media {
  schema: Schema;
  example?: { ok: boolean; result?: unknown };
}
interface Call {
  operationId: string;
  security?: unknown[];
  requestBody?: { required: boolean; content: Record<string, Media> };
  responses: Record<string, { $ref?: string; content?: Record<string, Media> }>;
}
interface OpenApi {
  paths: Record<string, Record<string, Call>>;
  components: { schemas: Record<string, Schema> };
}
interface Message {
  payload: Schema;
  examples?: { payload: { params?: unknown; result?: unknown } }[];
}
interface AsyncApi {
  channels: { socket: { messages: Record<string, unknown> } };
  operations: Record<
    string,
    { action: string; messages: { $ref: string }[]; reply?: { messages: { $ref: string }[] } }
  >;
  components: { messages: Record<string, Message>; schemas: Record<string, Schema> };
}

// As JSON, as they are served: JSON drops undefined values.
const openapi: OpenApi = JSON.parse(JSON.stringify(openApi()));
const asyncapi: AsyncApi = JSON.parse(JSON.stringify(asyncApi("chat.example.com", true)));
const page = referencePage();

const callOf = (name: string) => openapi.paths[`/api/${name}`]?.post as Call;
const answerOf = (name: string) => callOf(name).responses[200]?.content?.["application/json"];
/** A message with its payload, whose schema is stored under a name. */
function messageOf(name: string): Message {
  const { payload, ...rest } = asyncapi.components.messages[name] as Message;
  return { ...rest, payload: resolved(payload) };
}
const resolved = ({ $ref = "" }: Schema) =>
  asyncapi.components.schemas[$ref.split("/").at(-1) ?? ""] as Schema;

describe("OpenAPI", () => {
  test("is valid", async () => {
    const { valid, errors } = await new Validator().validate({ ...openapi });
    expect(errors ?? []).toEqual([]);
    expect(valid).toBe(true);
  });

  test("has no dangling references", () => expect(danglingRefs(openapi)).toEqual([]));

  test("has no schema that nothing refers to", () => expect(unusedSchemas(openapi)).toEqual([]));

  test("has every operation with all of its responses", () => {
    for (const each of allOperations) {
      const statuses = Object.keys(callOf(each.name).responses).map(Number);
      const declared = new Set(httpErrors(each).map((code) => errorStatus[code]));
      expect(statuses).toEqual([200, ...declared]);
      expect(statuses.includes(401)).toBe(
        each.access !== "public" || each.errors.includes("unauthorized"),
      );
      const agentToken = { agentToken: [] };
      const security = {
        public: [],
        service: [{ serviceKey: [] }],
        agent: [agentToken],
        session: undefined,
      };
      if (each.agents) expect(callOf(each.name).security).toContainEqual(agentToken);
      else if (each.access in security) {
        expect(callOf(each.name).security).toEqual(security[each.access as "public"]);
      }
    }
  });

  test("gives every operation a unique id", () => {
    const ids = Object.values(openapi.paths).flatMap((path) =>
      Object.values(path).map(({ operationId }) => operationId),
    );
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toEqual(expect.arrayContaining(Object.keys(operations)));
  });

  test("distinguishes success without a result, with a result, and with an optional result", () => {
    expect(answerOf("signOut")?.schema.properties?.result).toBeUndefined();
    expect(answerOf("getMe")?.schema.required).toEqual(["ok", "result"]);
    expect(answerOf("setMessageReaction")?.schema.required).toEqual(["ok"]);
  });

  test("requires a body exactly where an empty object is not accepted", () => {
    for (const { name, input } of allOperations) {
      expect([name, callOf(name).requestBody?.required]).toEqual([
        name,
        !input.safeParse({}).success,
      ]);
    }
  });

  test("expresses which fields exclude or require each other", () => {
    const ajv = new Ajv2020({ strict: false });
    addFormats(ajv);
    const isAccepted = (name: string, input: object) =>
      ajv.validate(callOf(name).requestBody?.content["application/json"]?.schema ?? false, input);
    const chat_id = Bun.randomUUIDv7();
    for (const [name, input] of [
      ["getChatHistory", { chat_id, before: chat_id }],
      ["getChatHistory", { chat_id, before: chat_id, after: chat_id }],
      ["getUpdates", { chat_id, since_seq: 0 }],
      ["getUpdates", { known: {} }],
      ["getUpdates", { chat_id, known: {} }],
      ["getUpdates", {}],
      ["sendChatAction", { chat_id, is_typing: true }],
      ["sendChatAction", { chat_id }],
    ] as const) {
      const isValid = operations[name].input.safeParse(input).success;
      expect([name, input, isAccepted(name, input)]).toEqual([name, input, isValid]);
    }
  });

  test("describes input before its transformation", () => {
    const { username, display_name } = fieldsOf("signUp");
    expect(username?.pattern).toBe("^[A-Za-z0-9_]{2,32}$");
    expect(display_name).toMatchObject({ minLength: 1, maxLength: 64 });
    expect(fieldsOf("getChat").chat_id).toMatchObject({ type: "string", format: "uuid" });
  });

  test("has the paths that are not operations", () => {
    for (const path of ["/health", "/ready", "/metrics", "/api/limits", "/api/ws"]) {
      expect(openapi.paths[path]?.get).toBeDefined();
    }
    const hook = openapi.paths["/hooks/{id}/{secret}"]?.post;
    expect(hook).toMatchObject({ security: [], responses: { 200: {}, 400: {}, 404: {} } });
    expect(openapi.paths["/api/ws"]?.get?.responses).toMatchObject({ 101: {}, 401: {} });
  });

  test("shows examples that the contract accepts", () => {
    for (const { name, input, output } of allOperations) {
      const body = callOf(name).requestBody;
      const sent = body?.content["application/json"]?.example ?? (body ? undefined : {});
      if (sent !== undefined)
        expect([name, input.safeParse(sent).error]).toEqual([name, undefined]);
      const got = answerOf(name)?.example;
      if (got) expect([name, output?.safeParse(got.result).error]).toEqual([name, undefined]);
    }
  });
});

describe("AsyncAPI", () => {
  test("is valid", () => {
    // The schema brings its own copy of draft-07, so that ajv must not load another.
    const ajv = new Ajv({ strict: false, meta: false, validateSchema: false });
    addFormats(ajv);
    const validate = ajv.compile(asyncApiSchemas["3.0.0"] as object);
    validate(asyncapi);
    expect(validate.errors ?? []).toEqual([]);
  });

  test("has no dangling references", () => expect(danglingRefs(asyncapi)).toEqual([]));

  test("has no schema that nothing refers to", () => expect(unusedSchemas(asyncapi)).toEqual([]));

  test("has every event, with `at` where it has one", () => {
    for (const [name, { params, delivery }] of allEvents) {
      const { payload, examples } = messageOf(name);
      expect(payload.properties?.method).toEqual({ const: name });
      expect("at" in (payload.properties ?? {})).toBe(
        delivery === "counted" || delivery === "standing",
      );
      for (const { payload } of examples ?? []) {
        expect(params.safeParse(payload.params).error).toBeUndefined();
      }
      expect(asyncapi.operations[name]?.action).toBe("send");
    }
  });

  test("shows the history_id of hello", () => {
    const [example] = messageOf("events.hello").examples ?? [];
    expect(example?.payload).toHaveProperty("history_id");
  });

  test("has every operation of people by its dotted name, with its replies", () => {
    for (const { socket, name, output } of socketOperations) {
      expect(messageOf(socket).payload.properties?.method).toEqual({ enum: [socket, name] });
      const { action, reply } = asyncapi.operations[socket] ?? {};
      const replies = reply?.messages.map(({ $ref }) => $ref.split("/").at(-1));
      expect(action).toBe("receive");
      expect(replies).toContain("reply.failed");
      expect(replies?.includes(`${socket}.result`)).toBe(output !== null);
    }
  });

  test("names the conversation conversation_id", () => {
    for (const { name, socket } of socketOperations) {
      const params = resolved(messageOf(socket).payload.properties?.params as Schema);
      expect(params.properties?.chat_id).toBeUndefined();
      expect("chat_id" in fieldsOf(name)).toBe("conversation_id" in (params.properties ?? {}));
    }
  });

  test("uses every name once", () => {
    const names = allOperations.flatMap(({ socket, name }) => [socket, name]);
    expect(new Set(names).size).toBe(names.length);
    expect(names.filter((name) => name in events || name.startsWith("reply."))).toEqual([]);
    expect(Object.keys(asyncapi.channels.socket.messages)).toEqual(
      Object.keys(asyncapi.components.messages),
    );
  });
});

test("no example has marks of special cases, such as deleted accounts", () => {
  const examples = allOperations.map(({ name }) => answerOf(name)?.example);
  expect(JSON.stringify(examples)).not.toMatch(/"(deleted|excerpt|imported)":/);
});

test("most operations and events have an example", () => {
  const without = allOperations.filter(({ name }) => !answerOf(name)?.example);
  expect(without.length).toBeLessThan(allOperations.length / 4);
  const silent = allEvents.filter(([name]) => !messageOf(name).examples);
  expect(silent.length).toBeLessThan(allEvents.length / 4);
});

describe("the reference page", () => {
  const ids = [...page.matchAll(/\sid="([^"]*)"/g)].map(([, id]) => id);

  test("has an anchor for every operation, event, record and code", () => {
    const { shared } = convertedAll();
    for (const { name, socket, access } of allOperations) {
      expect(ids).toContain(name);
      expect(page.includes(`<code>${socket}</code>`)).toBe(access !== "service");
    }
    expect(ids).toEqual(expect.arrayContaining(Object.keys(events)));
    expect(ids).toEqual(expect.arrayContaining(Object.keys(shared)));
    expect(ids).toEqual(expect.arrayContaining(allErrors.map((code) => `error-${code}`)));
    for (const code of Object.values(closeCodes)) expect(page).toContain(`>${code}</td>`);
    for (const name of Object.keys(readConfig({}).limits)) {
      expect(page).toContain(`<code>${name}</code>`);
    }
  });

  test("has unique ids and no broken links", () => {
    const links = [...page.matchAll(/href="#([^"]*)"/g)].map(([, id]) => id);
    expect(links.filter((id) => !ids.includes(id))).toEqual([]);
    expect(ids.filter((id, at) => ids.indexOf(id) !== at)).toEqual([]);
  });

  test("mentions only paths that exist", () => {
    const paths = [...page.matchAll(/\/api\/\w+/g)].map(([path]) => path);
    expect(paths.filter((path) => !(path in openapi.paths))).toEqual([]);
  });

  test("loads nothing but its own style", () => {
    const style = /<style>(.*?)<\/style>/s.exec(page)?.[1] ?? "";
    const hash = createHash("sha256").update(style).digest("base64");
    expect(referencePolicy).toContain(`style-src 'sha256-${hash}'`);
    expect(referencePolicy).toContain("default-src 'none'");
    expect(referencePolicy).not.toContain("unsafe");
    expect(page).not.toMatch(/<script|javascript:|\sstyle=|\son\w+=|url\(|@import/i);
    expect(page.match(/<style/g)).toHaveLength(1);
  });

  test("escapes values", () => {
    expect(page).toContain("&lt;owner&gt;:&lt;name&gt;");
    expect(page).not.toContain("<owner>");
    expect(render("<b> & `<i>`")).toBe("<p>&lt;b&gt; &amp; <code>&lt;i&gt;</code></p>\n");
    expect(render(table(["A", "B"], [["`a|b`", "c|\n<d>"]]))).toContain(
      "<tr><td><code>a|b</code></td><td>c| &lt;d&gt;</td></tr>",
    );
    expect(render('```json\n{"a": "\\"<:"}\n```')).toContain(
      '{<i class="key">&quot;a&quot;</i>: <i class="str">&quot;\\&quot;&lt;:&quot;</i>}',
    );
  });

  test("formats JSON without changing it", () => {
    for (const value of [{}, [], null, '\n"', { a: [{ b: "x".repeat(99) }, 1.5, true], c: {} }]) {
      expect(JSON.parse(pretty(value))).toEqual(value);
    }
  });
});

test("an operation with unusual schemas is described", () => {
  const hostile = "<script>alert(1)</script> & `<b>code</b>`";
  const odd = operation({
    name: "odd",
    socket: "odd.one",
    summary: hostile,
    input: z.union([
      z.object({ chat_id: z.string(), when: z.string().transform((text) => new Date(text)) }),
      z.object({ query: z.string().meta({ description: hostile, examples: [hostile] }) }),
    ]),
    output: z.map(z.string(), z.bigint()).optional(),
  });
  const book = createSchemaBook("#", "draft-2020-12");
  const input = book.input(odd.input);
  expect(socketParams(input).anyOf?.[0]?.required).toEqual(["conversation_id", "when"]);
  expect(inputExample(odd, input, book.shared)).toBeDefined();
  const text = operationBlock(odd, book);
  expect(text).toContain("&lt;script&gt;");
  expect(text).not.toMatch(/<script|<b>code/);
});

const fieldsOf = (name: string) =>
  callOf(name).requestBody?.content["application/json"]?.schema.properties ?? {};

function convertedAll() {
  const book = createSchemaBook("#", "draft-2020-12");
  for (const { output } of allOperations) if (output) book.output(output);
  for (const [, { params }] of allEvents) book.output(params);
  return book;
}

function refsOf(document: unknown): string[] {
  const refs: string[] = [];
  JSON.stringify(document, (key, value) => {
    if (key === "$ref") refs.push(value);
    return value;
  });
  expect(refs.length).toBeGreaterThan(0);
  return refs;
}

function unusedSchemas(document: { components: { schemas: object } }): string[] {
  const refs = new Set(refsOf(document));
  const names = Object.keys(document.components.schemas);
  return names.filter((name) => !refs.has(`#/components/schemas/${name}`));
}

/** The `$ref`s of a document that point to nothing in it. */
function danglingRefs(document: unknown): string[] {
  return refsOf(document).filter((ref) => {
    const path = ref.slice(2).split("/");
    const step = (at: unknown, key: string) => (at as Record<string, unknown> | undefined)?.[key];
    return !ref.startsWith("#/") || path.reduce(step, document) === undefined;
  });
}

test("the header x-parley-as is a parameter of the operations that service keys call for people", () => {
  const { paths, components } = openApi() as {
    paths: Record<string, { post?: { parameters?: object[]; security?: object[] } }>;
    components: { securitySchemes: object; parameters: Record<string, object> };
  };
  const reference = "#/components/parameters/ActsFor";
  expect(components.parameters.ActsFor).toMatchObject({ name: "x-parley-as", in: "header" });
  expect(Object.keys(components.securitySchemes)).not.toContain("actsFor");
  expect(paths["/api/sendMessage"]?.post?.parameters).toEqual([{ $ref: reference }]);
  expect(paths["/api/upsertUsers"]?.post?.parameters).toBeUndefined();
});
