import { afterAll, expect, test } from "bun:test";
import {
  agentOf,
  answerTo,
  failure,
  groupOf,
  liftLimits,
  people,
  say,
} from "@parley/testkit/client.ts";
import { answers, toolCalls } from "@parley/testkit/provider-responders.ts";
import { providersAt } from "@parley/testkit/provider-server.ts";
import { noRates, startServer } from "@parley/testkit/server.ts";
import { startSharedProvider } from "@parley/testkit/shared-provider.ts";
import { asksDuringCalls, ToolServer } from "@parley/testkit/tool-server.ts";
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

async function setUp() {
  const [alice, bob] = await people(server.url, "alice", "bob");
  await liftLimits(alice);
  const tools = new ToolServer();
  asksDuringCalls(tools, { message: "Which seat? <b>@alice</b>", requestedSchema });
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
  const form = await reader.event("events.messageNew", ({ content }) =>
    content.includes('<form id="elicit-'),
  );
  const id = /<form id="(elicit-[^"]+)">/.exec(form.params.content)?.[1];
  const submit = (person: typeof alice, action: string, fields = {}) =>
    person.call("sendComponentAction", {
      chat_id: chat.id,
      message_id: form.params.id,
      action,
      fields,
    });
  return {
    alice,
    bob,
    reader,
    trigger,
    form: form.params,
    id,
    submit,
    async [Symbol.asyncDispose]() {
      await reader[Symbol.asyncDispose]();
      await tools[Symbol.asyncDispose]();
    },
  };
}

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

test("the owner can decline", async () => {
  await using asked = await setUp();
  const { alice, reader, trigger, id, submit } = asked;
  await submit(alice, `dismiss:${id}`);
  const final = await answerTo(reader, trigger);
  const { items } = await alice.call("getToolCalls", { message_id: final.id });
  expect(JSON.parse(items[0]?.result ?? "")).toMatchObject({ action: "decline" });
});
