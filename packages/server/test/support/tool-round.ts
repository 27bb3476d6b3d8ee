import type { ProtocolName } from "../../src/agents/providers/index.ts";
import type { ModelMessage, ToolDefinition } from "../../src/rules/model-content.ts";

export const TOOLS: ToolDefinition[] = [
  {
    name: "get_weather",
    description: "The weather at a place.",
    input_schema: {
      type: "object",
      properties: { location: { type: "string" } },
      required: ["location"],
    },
  },
  {
    name: "get_time",
    description: "The current time.",
    input_schema: { type: "object", properties: {} },
  },
];

/** Two calls at once, one of which fails, then another call without any text. */
export const TOOL_ROUNDS: ModelMessage[] = [
  { role: "user", content: [{ type: "text", text: "alice: weather and time?" }] },
  {
    role: "assistant",
    content: [
      { type: "text", text: "Let me look." },
      { type: "tool_use", id: "call_1", name: "get_weather", input: { location: "Rome" } },
      { type: "tool_use", id: "call_2", name: "get_time", input: {} },
    ],
  },
  {
    role: "user",
    content: [
      {
        type: "tool_result",
        tool_use_id: "call_1",
        content: [{ type: "text", text: "no such place" }],
        is_error: true,
      },
      {
        type: "tool_result",
        tool_use_id: "call_2",
        content: [{ type: "text", text: "12:00" }],
        is_error: false,
      },
    ],
  },
  {
    role: "assistant",
    content: [{ type: "tool_use", id: "call_3", name: "get_time", input: {} }],
  },
  {
    role: "user",
    content: [
      { type: "tool_result", tool_use_id: "call_3", content: [], is_error: false },
      { type: "text", text: "bob: hurry" },
    ],
  },
];

const [weather, time] = TOOLS.map(({ input_schema }) => input_schema);

const calledFunction = (id: string, name: string, args: string) => ({
  id,
  type: "function",
  function: { name, arguments: args },
});

/** The same rounds, written for the official SDKs as their documentation shows it. */
export const TOOL_PARAMS = {
  anthropic: {
    messages: [
      { role: "user", content: "alice: weather and time?" },
      {
        role: "assistant",
        content: [
          { type: "text", text: "Let me look." },
          { type: "tool_use", id: "call_1", name: "get_weather", input: { location: "Rome" } },
          { type: "tool_use", id: "call_2", name: "get_time", input: {} },
        ],
      },
      {
        role: "user",
        content: [
          {
            type: "tool_result",
            tool_use_id: "call_1",
            content: "no such place",
            is_error: true,
          },
          { type: "tool_result", tool_use_id: "call_2", content: "12:00" },
        ],
      },
      {
        role: "assistant",
        content: [{ type: "tool_use", id: "call_3", name: "get_time", input: {} }],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "call_3" },
          { type: "text", text: "bob: hurry" },
        ],
      },
    ],
    tools: [
      { name: "get_weather", description: "The weather at a place.", input_schema: weather },
      { name: "get_time", description: "The current time.", input_schema: time },
    ],
  },
  openai: {
    messages: [
      { role: "system", content: "You are a test." },
      { role: "user", content: "alice: weather and time?" },
      {
        role: "assistant",
        content: "Let me look.",
        tool_calls: [
          calledFunction("call_1", "get_weather", '{"location":"Rome"}'),
          calledFunction("call_2", "get_time", "{}"),
        ],
      },
      { role: "tool", tool_call_id: "call_1", content: "Error: no such place" },
      { role: "tool", tool_call_id: "call_2", content: "12:00" },
      {
        role: "assistant",
        content: null,
        tool_calls: [calledFunction("call_3", "get_time", "{}")],
      },
      { role: "tool", tool_call_id: "call_3", content: "" },
      { role: "user", content: "bob: hurry" },
    ],
    tools: [
      {
        type: "function",
        function: {
          name: "get_weather",
          description: "The weather at a place.",
          parameters: weather,
        },
      },
      {
        type: "function",
        function: { name: "get_time", description: "The current time.", parameters: time },
      },
    ],
  },
} satisfies Record<ProtocolName, object>;
