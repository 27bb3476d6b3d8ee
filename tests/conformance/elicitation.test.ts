import { afterAll, expect, test } from "bun:test";
import type { Message } from "@parley/protocol";
import { type FormBlock, parseMarkup } from "@parley/protocol/markup";
import {
  agentOf,
  answerTo,
  failure,
  groupOf,
  liftLimits,
  type Person,
  people,
  say,
} from "@parley/testkit/client.ts";
import { answers, toolCalls } from "@parley/testkit/provider-responders.ts";
import { providersAt } from "@parley/testkit/provider-server.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { startSharedProvider } from "@parley/testkit/shared-provider.ts";
import { asksDuringCalls, type ReceivedMessage, ToolServer } from "@parley/testkit/tool-server.ts";
import { newKey } from "@parley/testkit/turns.ts";

const provider = await startSharedProvider();
const server = await startServer({
  ...noRates,
  ...providersAt(provider.url),
  PARLEY_PRIVATE_ADDRESSES: "allow",
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
});

const requestedSchema = {
  type: "object",
  properties: {
    seat: { type: "string", title: "Seat", enum: ["aisle", "window"] },
    bags: { type: "integer", title: "Bags" },
    insured: { type: "boolean" },
  },
  required: ["seat"],
};

const frame = (message: object) => `data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`;

/** Asks for a seat during the call, and returns what it was told. */
const asksForSeat = (tools: ToolServer) =>
  asksDuringCalls(tools, { message: "Which seat? <b>@alice</b>", requestedSchema });

/** Asks all of it at once during the call, and returns the answers once all but the given number came. */
function asksAtOnce(tools: ToolServer, questions: readonly object[], unanswered = 0): void {
  const told: unknown[] = [];
  let answered = () => {};
  tools.answer = ({ message }: ReceivedMessage) => {
    if (String(message.id).startsWith("ask") && message.method === undefined) {
      told.push(message.result ?? message.error);
      if (told.length === questions.length - unanswered) answered();
      return new Response(null, { status: 202 });
    }
    if (message.method !== "tools/call") return undefined;
    const { id } = message;
    const body = new ReadableStream<string>({
      start(stream) {
        for (const [place, params] of questions.entries()) {
          stream.enqueue(frame({ id: `ask${place}`, method: "elicitation/create", params }));
        }
        answered = () => {
          stream.enqueue(
            frame({
              id,
              result: {
                content: [{ type: "text", text: told.map((each) => JSON.stringify(each)).join() }],
              },
            }),
          );
          stream.close();
        };
      },
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  };
}

/** Alice's agent calls a tool that asks, in a group with bob. */
async function callTool(prepare: (tools: ToolServer) => void) {
  const [alice, bob] = await people(server.url, "alice", "bob");
  await liftLimits(alice);
  const tools = new ToolServer();
  prepare(tools);
  const { id: server_id } = await alice.call("addToolServer", { name: "air", url: tools.url });
  const agent_username = agentOf(alice);
  const grants = [{ server_id, tool: "echo", policy: "always" as const }];
  await alice.call("setAgentTools", { agent_username, grants });
  const key = await newKey(alice);
  const chat = await groupOf(alice, bob);
  await alice.call("addGroupAgent", { chat_id: chat.id, agent_username });
  provider.respond(key, toolCalls([{ name: "air__echo", input: {} }]), answers("Booked."));
  const reader = await alice.connect();
  const trigger = await say(bob, chat, `@${agent_username} book it`);
  return {
    alice,
    bob,
    chat,
    reader,
    trigger,
    async [Symbol.asyncDispose]() {
      await reader[Symbol.asyncDispose]();
      await tools[Symbol.asyncDispose]();
    },
  };
}

const formId = ({ content }: Pick<Message, "content">) =>
  /<form id="(elicit-[^"]+)">/.exec(content)?.[1];

async function setUp() {
  const talk = await callTool(asksForSeat);
  const { chat, reader } = talk;
  const { params: form } = await reader.event("events.messageNew", (each) => !!formId(each));
  const submit = (person: Person, action: string, fields = {}, message_id = form.id) =>
    person.call("sendComponentAction", { chat_id: chat.id, message_id, action, fields });
  return { ...talk, form, id: formId(form), submit };
}

const formsIn = async (person: Person, chat: { id: string }) => {
  const { items } = await person.call("getChatHistory", { chat_id: chat.id });
  return items.filter((each) => formId(each));
};

test("what a tool asks becomes a form that only the owner answers", async () => {
  await using asked = await setUp();
  const { alice, bob, reader, trigger, form, id, submit } = asked;
  expect(form.content).toContain('<select name="seat" label="Seat" required>');
  expect(form.content).toContain('<input name="bags" label="Bags" type="number">');
  expect(form.content).toContain("> Which seat? \\<b>@alice\\</b>");
  expect(form.mentions).toEqual([alice.username]);
  const fields = { seat: "aisle", bags: "2", insured: "true", extra: "x" };
  expect((await failure(submit(bob, `form_submit:${id}`, fields))).code).toBe("forbidden");
  await submit(alice, `form_submit:${id}`, fields);
  const final = await answerTo(reader, trigger);
  expect(final.content).toBe("Booked.");
  const { items } = await alice.call("getToolCalls", { message_id: final.id });
  expect(JSON.parse(items[0]?.result ?? "")).toMatchObject({
    action: "accept",
    content: { seat: "aisle", bags: 2, insured: true },
  });
  const { items: history } = await bob.call("getChatHistory", { chat_id: form.conversation_id });
  expect(history.some(({ content }) => content.includes("Form submitted"))).toBe(false);
});

const choices = {
  type: "object",
  properties: {
    titled: {
      type: "string",
      title: "Cabin",
      oneOf: [
        { const: "c1", title: "First  & best" },
        { const: "c2", title: "Second" },
      ],
    },
    named: { type: "string", enum: ["x", "y"], enumNames: ["The X", "The Y"] },
    meals: {
      type: "array",
      title: "Meals",
      items: { type: "string", enum: ["fish", "soup"] },
      maxItems: 1,
    },
    extras: {
      type: "array",
      title: "Extras",
      items: {
        anyOf: [
          { const: "w", title: "Wifi" },
          { const: "p", title: "Pillow" },
        ],
      },
    },
    mail: { type: "string", format: "email" },
    count: { type: "integer", minimum: 1, maximum: 9 },
    day: { type: "string", format: "date" },
    at: { type: "string", format: "date-time" },
  },
  required: ["titled", "extras"],
};

test("choices are shown with their titles, and answers are read by what the tool asked for", async () => {
  const question = { message: "How?", requestedSchema: choices };
  await using asked = await callTool((tools) => asksAtOnce(tools, [question]));
  const { alice, chat, reader, trigger } = asked;
  const { params: form } = await reader.event("events.messageNew", (each) => !!formId(each));
  const block = parseMarkup(form.content).find(({ type }) => type === "form") as FormBlock;
  const fieldsShown = block.children.flatMap((each) =>
    each.type === "select" ? [[each.name, each.label, each.options, each.required]] : [],
  );
  const yesOrNo = ["Yes", "No"];
  expect(fieldsShown).toEqual([
    ["titled", "Cabin", ["First & best", "Second"], true],
    ["named", "named", ["The X", "The Y"], false],
    ["meals#1", "Meals: fish", yesOrNo, false],
    ["meals#2", "Meals: soup", yesOrNo, false],
    ["extras#1", "Extras: Wifi", yesOrNo, false],
    ["extras#2", "Extras: Pillow", yesOrNo, false],
  ]);
  const submit = (fields: object) =>
    alice.call("sendComponentAction", {
      chat_id: chat.id,
      message_id: form.id,
      action: `form_submit:${formId(form)}`,
      fields: { ...fields },
    });
  const wrong = {
    titled: "Third",
    "meals#1": "Yes",
    "meals#2": "Yes",
    mail: "nobody",
    count: "1.5",
    day: "tomorrow",
  };
  const { code, parameters } = await failure(submit(wrong));
  expect(code).toBe("bad_request");
  expect(Object.keys(parameters?.fields ?? {}).sort()).toEqual(
    ["count", "day", "extras#1", "mail", "meals#1", "titled"].map((name) => `fields.${name}`),
  );
  await submit({
    titled: "First & best",
    named: "y",
    "meals#1": "No",
    "meals#2": "Yes",
    "extras#1": "Yes",
    "extras#2": "Yes",
    count: "3",
    day: "",
  });
  const final = await answerTo(reader, trigger);
  const { items } = await alice.call("getToolCalls", { message_id: final.id });
  expect(JSON.parse(items[0]?.result ?? "")).toEqual({
    action: "accept",
    content: { titled: "c1", named: "y", meals: ["soup"], extras: ["w", "p"], count: 3 },
  });
});

const described = {
  type: "object",
  description: "Prices *include* <b>taxes</b>.",
  default: { cabin: "c2", seat: "never, it has its own" },
  properties: {
    seat: { title: "Seat", description: `In row "7" <or>\n8`, default: 'by "the" wing & quiet' },
    bags: { type: "integer", description: "Bags, in all", default: 2 },
    cabin: { title: "Cabin", oneOf: [{ const: "c1" }, { const: "c2", title: "Second" }] },
    insured: { type: "boolean", default: false },
    meals: {
      type: "array",
      title: "Meals",
      description: "As many as you like",
      items: { type: "string", enum: ["fish", "soup"] },
      default: ["soup"],
    },
    note: { title: "Note", description: "é".repeat(5000), default: "x".repeat(5000) },
    unfit: { type: "number", title: "Unfit", description: {}, default: "many" },
    unlisted: { type: "string", enum: ["a"], default: "b" },
  },
};

test("descriptions and defaults of what a tool asks are shown", async () => {
  const question = { message: "How?", requestedSchema: described };
  await using asked = await callTool((tools) => asksAtOnce(tools, [question]));
  const { alice, chat, reader, trigger } = asked;
  const { params: form } = await reader.event("events.messageNew", (each) => !!formId(each));
  expect(form.content).toContain("> Prices \\*include\\* \\<b>taxes\\</b>.");
  const block = parseMarkup(form.content).find(({ type }) => type === "form") as FormBlock;
  const shown = block.children.flatMap((each) =>
    each.type === "input" || each.type === "select"
      ? [[each.name, each.label, each.hint, each.value]]
      : [],
  );
  expect(shown).toEqual([
    ["seat", "Seat", 'In row "7" <or> 8', 'by "the" wing & quiet'],
    ["bags", "Bags, in all", undefined, "2"],
    ["cabin", "Cabin", undefined, "Second"],
    ["insured", "insured", undefined, "No"],
    ["meals#1", "Meals: fish", "As many as you like", "No"],
    ["meals#2", "Meals: soup", undefined, "Yes"],
    ["note", "Note", `${"é".repeat(300)}…`, undefined],
    ["unfit", "Unfit", undefined, undefined],
    ["unlisted", "unlisted", undefined, undefined],
  ]);
  await alice.call("sendComponentAction", {
    chat_id: chat.id,
    message_id: form.id,
    action: `form_submit:${formId(form)}`,
    fields: Object.fromEntries(shown.map(([name, , , value]) => [name, value ?? ""])),
  });
  const final = await answerTo(reader, trigger);
  const { items } = await alice.call("getToolCalls", { message_id: final.id });
  expect(JSON.parse(items[0]?.result ?? "")).toEqual({
    action: "accept",
    content: {
      seat: 'by "the" wing & quiet',
      bags: 2,
      cabin: "c2",
      insured: false,
      meals: ["soup"],
    },
  });
});

test("answers that the form does not allow are refused by the names of its fields", async () => {
  const question = { message: "How?", requestedSchema: choices };
  await using asked = await callTool((tools) => asksAtOnce(tools, [question], 1));
  const { alice, chat, reader } = asked;
  const { params: form } = await reader.event("events.messageNew", (each) => !!formId(each));
  const right = { titled: "Second", "extras#1": "Yes" };
  const wrong: [string, Record<string, unknown>][] = [
    ["extras#2", { "extras#2": "perhaps" }],
    ["extras", { extras: ["x"] }],
    ["day", { day: "2026-02-31" }],
    ["at", { at: "2026-02-31T10:00:00Z" }],
    ["count", { count: "0x5" }],
    ["count", { count: "0b1" }],
    ["__proto__", JSON.parse('{ "__proto__": "x" }')],
  ];
  for (const [name, given] of wrong) {
    const submitted = alice.call("sendComponentAction", {
      chat_id: chat.id,
      message_id: form.id,
      action: `form_submit:${formId(form)}`,
      fields: Object.fromEntries([...Object.entries(right), ...Object.entries(given)]),
    });
    const { code, parameters } = await failure(submitted);
    expect(code).toBe("bad_request");
    expect(Object.keys(parameters?.fields ?? {})).toEqual([`fields.${name}`]);
  }
});

const texts = (names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, { type: "string" }]));

test.each([
  [
    "too many fields",
    texts(Array.from({ length: 51 }, (_, place) => `field${place}`)),
    "more than 50",
  ],
  ["a field with a long name", texts(["n".repeat(65)]), "whose name"],
  ["a field with a reserved name", texts(["__proto__"]), "whose name"],
  ["a field with a line break in its name", texts(["a\nb"]), "whose name"],
  [
    "two fields with one name",
    { tags: { type: "array", items: { type: "string", enum: ["x"] } }, ...texts(["tags#1"]) },
    "the same name",
  ],
])("a form with %s is not asked, and the server is told why", async (_, properties, why) => {
  const question = { message: "?", requestedSchema: { type: "object", properties } };
  await using asked = await callTool((tools) => asksAtOnce(tools, [question]));
  const { alice, chat, reader, trigger } = asked;
  const final = await answerTo(reader, trigger);
  const { items } = await alice.call("getToolCalls", { message_id: final.id });
  expect(items[0]?.result).toContain(why);
  expect(await formsIn(alice, chat)).toEqual([]);
});

test("a form with fifty fields can be answered", async () => {
  const names = Array.from({ length: 50 }, (_, place) => `${place}`.padEnd(64, "n"));
  const requestedSchema = { type: "object", properties: texts(names), required: names };
  await using asked = await callTool((tools) =>
    asksAtOnce(tools, [{ message: "?", requestedSchema }]),
  );
  const { alice, chat, reader, trigger } = asked;
  const { params: form } = await reader.event("events.messageNew", (each) => !!formId(each));
  const fields = Object.fromEntries(names.map((name) => [name, "x"]));
  const action = `form_submit:${formId(form)}`;
  await alice.call("sendComponentAction", {
    chat_id: chat.id,
    message_id: form.id,
    action,
    fields,
  });
  const final = await answerTo(reader, trigger);
  const { items } = await alice.call("getToolCalls", { message_id: final.id });
  expect(JSON.parse(items[0]?.result ?? "")).toEqual({ action: "accept", content: fields });
});

test("what a tool asks is listed for the owner until it is answered, hidden or deleted", async () => {
  const questions = ["1?", "2?", "3?", "4?"].map((message) => ({ message, requestedSchema }));
  await using asked = await callTool((tools) => asksAtOnce(tools, questions, 1));
  const { alice, bob, chat, reader } = asked;
  const forms = await Promise.all(
    questions.map(async ({ message }) => {
      const isAsked = ({ content }: Message) => content.includes(message);
      return (await reader.event("events.messageNew", isAsked)).params;
    }),
  );
  const [first, second, third, last] = forms as [Message, Message, Message, Message];
  const listed = async (person = alice) => (await person.call("getPendingToolCalls")).questions;
  const ids = async () => (await listed()).map(({ message_id }) => message_id);
  expect(new Set(await ids())).toEqual(new Set(forms.map(({ id }) => id)));
  expect(await listed(bob)).toEqual([]);
  const { call } = (await reader.event("events.toolCallUpdated")).params;
  const chat_id = chat.id;
  const action = `dismiss:${formId(first)}`;
  await alice.call("sendComponentAction", { chat_id, message_id: first.id, action });
  await alice.call("deleteMessagesForMe", { chat_id, message_ids: [second.id] });
  await alice.call("deleteMessages", { chat_id, message_ids: [third.id] });
  const [left, ...others] = await listed();
  expect(others).toEqual([]);
  expect(left).toMatchObject({
    message_id: last.id,
    call_id: call.id,
    conversation_id: chat.id,
    agent: { username: agentOf(alice) },
    created_at: last.created_at,
  });
  expect(Date.parse(left?.expires_at ?? "")).toBe(Date.parse(last.created_at) + 600_000);
  await alice.call("stopChatAgents", { chat_id });
  await reader.event("events.toolCallUpdated", ({ call }) => call.status === "failed");
  expect(await listed()).toEqual([]);
});

test("the owner can decline", async () => {
  await using asked = await setUp();
  const { alice, reader, trigger, id, submit } = asked;
  await submit(alice, `dismiss:${id}`);
  const final = await answerTo(reader, trigger);
  const { items } = await alice.call("getToolCalls", { message_id: final.id });
  expect(JSON.parse(items[0]?.result ?? "")).toMatchObject({ action: "decline" });
});

test("a form that is deleted is not answered, and the agent goes on", async () => {
  await using asked = await setUp();
  const { alice, chat, reader, trigger, form } = asked;
  await alice.call("deleteMessages", { chat_id: chat.id, message_ids: [form.id] });
  const final = await answerTo(reader, trigger);
  const { items } = await alice.call("getToolCalls", { message_id: final.id });
  expect(JSON.parse(items[0]?.result ?? "")).toMatchObject({ action: "cancel" });
});

test("an answer that comes too late is refused, and shown to nobody", async () => {
  await using asked = await setUp();
  const { alice, bob, chat, reader, trigger, id, submit } = asked;
  await submit(alice, `dismiss:${id}`);
  await answerTo(reader, trigger);
  const late = submit(alice, `form_submit:${id}`, { seat: "my secret" });
  expect((await failure(late)).code).toBe("conflict");
  const { items } = await bob.call("getChatHistory", { chat_id: chat.id });
  expect(JSON.stringify(items)).not.toContain("my secret");
});

test("a form of somebody else does not answer what a tool asks", async () => {
  await using asked = await setUp();
  const { alice, bob, chat, reader, trigger, id, submit } = asked;
  const forged = await say(bob, chat, `<form id="${id}"><input name="seat" label="Name"></form>`);
  const answer = submit(alice, `form_submit:${id}`, { seat: "window" }, forged.id);
  expect((await failure(answer)).code).toBe("conflict");
  await submit(alice, `form_submit:${id}`, { seat: "aisle" });
  const final = await answerTo(reader, trigger);
  const { items } = await alice.call("getToolCalls", { message_id: final.id });
  expect(items[0]?.result).toContain('"seat":"aisle"');
});

test("questions that a tool asks at once are answered one by one", async () => {
  const questions = ["First?", "Second?"].map((message) => ({ message, requestedSchema }));
  await using asked = await callTool((tools) => asksAtOnce(tools, questions));
  const { alice, chat, reader, trigger } = asked;
  for (const [place, { message }] of questions.entries()) {
    const isAsked = ({ content }: Message) => content.includes(message);
    const { params: form } = await reader.event("events.messageNew", isAsked);
    const action = `form_submit:${formId(form)}`;
    const fields = { seat: "aisle", bags: `${place}` };
    const submitted = { chat_id: chat.id, message_id: form.id, action, fields };
    await alice.call("sendComponentAction", submitted);
    // The second one ends the call.
    if (place > 0) continue;
    const again = alice.call("sendComponentAction", submitted);
    expect(await failure(again)).toMatchObject({
      code: "conflict",
      message: expect.stringContaining("answered already"),
    });
    const other = await reader.event("events.messageNew", (each) =>
      each.content.includes("Second?"),
    );
    const action2 = `form_submit:${formId(other.params)}`;
    const elsewhere = { chat_id: chat.id, message_id: form.id, action: action2, fields };
    expect((await failure(alice.call("sendComponentAction", elsewhere))).code).toBe("conflict");
  }
  const final = await answerTo(reader, trigger);
  const { items } = await alice.call("getToolCalls", { message_id: final.id });
  expect(items[0]?.result).toContain('"bags":0}');
  expect(items[0]?.result).toContain('"bags":1}');
});

test("a server that asks without end gets few answers", async () => {
  const questions = Array.from({ length: 100 }, () => ({ message: "?", requestedSchema }));
  await using asked = await callTool((tools) => asksAtOnce(tools, questions, 8));
  const { alice, chat, reader, trigger } = asked;
  const final = await answerTo(reader, trigger);
  const { items } = await alice.call("getToolCalls", { message_id: final.id });
  expect(items[0]?.result).not.toContain("accept");
  expect(await formsIn(alice, chat)).toHaveLength(8);
});

test("a form that is longer than a message may be is not asked", async () => {
  const texts = Array.from({ length: 50 }, (_, place) => `${"&".repeat(196)}${place}`);
  const field = { type: "string", enum: texts };
  const properties = { one: field, two: field, three: field };
  const long = { message: "?", requestedSchema: { type: "object", properties } };
  await using asked = await callTool((tools) => asksAtOnce(tools, [long]));
  const { alice, chat, reader, trigger } = asked;
  const final = await answerTo(reader, trigger);
  const { items } = await alice.call("getToolCalls", { message_id: final.id });
  expect(items[0]?.result).toContain("longer than a message");
  expect(await formsIn(alice, chat)).toEqual([]);
});

test("a form is asked without the descriptions and defaults that do not fit into a message", async () => {
  const field = { title: "Field", description: '"'.repeat(300), default: "x" };
  const properties = Object.fromEntries(
    Array.from({ length: 40 }, (_, place) => [`field${place}`, field]),
  );
  const long = { message: "?", requestedSchema: { type: "object", properties } };
  await using asked = await callTool((tools) => asksAtOnce(tools, [long], 1));
  const { params: form } = await asked.reader.event("events.messageNew", (each) => !!formId(each));
  expect(form.content).toContain('<input name="field39" label="Field" type="text">');
});

test("a form with fields that are not described is asked", async () => {
  const odd = { message: "?", requestedSchema: { properties: { a: null, b: { title: {} } } } };
  await using asked = await callTool((tools) => asksAtOnce(tools, [odd], 1));
  const { params: form } = await asked.reader.event("events.messageNew", (each) => !!formId(each));
  expect(form.content).toContain('<input name="a" label="a" type="text">');
  expect(form.content).toContain('<input name="b" label="b" type="text">');
});
