import type { ProtocolName } from "../../server/src/agents/providers/index.ts";

/** A tool call of an answer. */
export interface SentCall {
  /** Default: a new one. */
  id?: string;
  name: string;
  /** A string is sent as it is, for arguments that are no JSON. Default: an empty object. */
  input?: object | string;
}

/** What a provider sends in one protocol, written after the providers' own documentation. */
export interface ProtocolFrames {
  /** The events before the first text. */
  begin: string;
  text(text: string): string;
  thinking: string;
  /** Complete calls, after the text. Their arguments come in several pieces. */
  toolCalls(calls: readonly SentCall[]): string;
  /** The stop reason and the usage. */
  end(reason: EndReason, outputTokens?: number): string;
  /** An error inside the stream. */
  error(type: string): string;
  /** The body of an error response. */
  errorBody(type: string, message: string): string;
  /** The body of a list of models, given newest first. */
  models(ids: readonly string[]): string;
}

export type EndReason = "stop" | "length" | "refused" | "tool_use";

/** Text that must never appear in what people see. */
export const RAW_PROVIDER_TEXT = "raw words of the provider";

const dataFrame = (data: unknown) => `data: ${JSON.stringify(data)}\n\n`;
const namedFrame = (type: string, data: object) =>
  `event: ${type}\n${dataFrame({ type, ...data })}`;

const newCallId = () => `toolu_${crypto.randomUUID().replaceAll("-", "")}`;

/** The arguments of a call as JSON, in two pieces. */
function argumentPieces({ input = {} }: SentCall): string[] {
  const json = typeof input === "string" ? input : JSON.stringify(input);
  const middle = Math.ceil(json.length / 2);
  return [json.slice(0, middle), json.slice(middle)];
}

const ANTHROPIC_STOP_REASONS = {
  stop: "end_turn",
  length: "max_tokens",
  refused: "refusal",
  tool_use: "tool_use",
};

function toolUseBlock(index: number, call: SentCall): string {
  const { id = newCallId(), name } = call;
  const content_block = { type: "tool_use", id, name, input: {} };
  const deltas = ["", ...argumentPieces(call)].map((partial_json) =>
    namedFrame("content_block_delta", { index, delta: { type: "input_json_delta", partial_json } }),
  );
  return (
    namedFrame("content_block_start", { index, content_block }) +
    deltas.join("") +
    namedFrame("content_block_stop", { index })
  );
}

const anthropic: ProtocolFrames = {
  begin:
    namedFrame("message_start", {
      message: {
        id: "msg_1nZdL29xx5MUA1yADyHTEsnR8uuvGzszyY",
        type: "message",
        role: "assistant",
        content: [],
        model: "test-model",
        stop_reason: null,
        stop_sequence: null,
        usage: {
          input_tokens: 5,
          cache_creation_input_tokens: 8,
          cache_read_input_tokens: 12,
          output_tokens: 1,
        },
      },
    }) +
    namedFrame("content_block_start", { index: 0, content_block: { type: "text", text: "" } }) +
    namedFrame("ping", {}),
  text: (text) =>
    namedFrame("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
  thinking: namedFrame("content_block_delta", {
    index: 0,
    delta: { type: "thinking_delta", thinking: "Let me see …" },
  }),
  toolCalls: (calls) =>
    namedFrame("content_block_stop", { index: 0 }) +
    calls.map((call, index) => toolUseBlock(index + 1, call)).join(""),
  end: (reason, output_tokens = 15) =>
    (reason === "tool_use" ? "" : namedFrame("content_block_stop", { index: 0 })) +
    namedFrame("message_delta", {
      delta: { stop_reason: ANTHROPIC_STOP_REASONS[reason], stop_sequence: null },
      usage: { output_tokens },
    }) +
    namedFrame("message_stop", {}),
  error: (type) => namedFrame("error", { error: { type, message: RAW_PROVIDER_TEXT } }),
  errorBody: (type, message) => JSON.stringify({ type: "error", error: { type, message } }),
  models: (ids) =>
    JSON.stringify({
      data: ids.map((id) => ({
        type: "model",
        id,
        display_name: `The ${id}`,
        created_at: "2025-02-19T00:00:00Z",
      })),
      has_more: false,
      first_id: ids[0] ?? null,
      last_id: ids.at(-1) ?? null,
    }),
};

const OPENAI_CHUNK = {
  id: "chatcmpl-123",
  object: "chat.completion.chunk",
  created: 1694268190,
  model: "test-model",
};

const chunkFrame = (delta: object, finish_reason: string | null = null) =>
  dataFrame({
    ...OPENAI_CHUNK,
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    usage: null,
  });

const OPENAI_FINISH_REASONS = {
  stop: "stop",
  length: "length",
  refused: "content_filter",
  tool_use: "tool_calls",
};

function toolCallChunks(index: number, call: SentCall): string {
  const { id = newCallId(), name } = call;
  const head = { index, id, type: "function", function: { name, arguments: "" } };
  const pieces = argumentPieces(call).map((text) => ({ index, function: { arguments: text } }));
  return [head, ...pieces].map((delta) => chunkFrame({ tool_calls: [delta] })).join("");
}

const openai: ProtocolFrames = {
  begin: chunkFrame({ role: "assistant", content: "", refusal: null }),
  text: (content) => chunkFrame({ content }),
  thinking: chunkFrame({ reasoning_content: "Let me see …" }),
  toolCalls: (calls) => calls.map((call, index) => toolCallChunks(index, call)).join(""),
  end: (reason, completion_tokens = 15) =>
    chunkFrame({}, OPENAI_FINISH_REASONS[reason]) +
    dataFrame({
      ...OPENAI_CHUNK,
      choices: [],
      usage: { prompt_tokens: 25, completion_tokens, total_tokens: 25 + completion_tokens },
    }) +
    "data: [DONE]\n\n",
  error: (type) => dataFrame({ error: { message: RAW_PROVIDER_TEXT, type, code: null } }),
  errorBody: (type, message) =>
    JSON.stringify({ error: { message, type, param: null, code: null } }),
  // OpenAI indents it, and lists models in no order.
  models: (ids) =>
    JSON.stringify(
      {
        object: "list",
        data: ids
          .map((id, place) => ({
            id,
            object: "model",
            created: 1_686_935_002 - place,
            owned_by: "openai",
          }))
          .reverse(),
      },
      null,
      2,
    ),
};

export const framesOf: Record<ProtocolName, ProtocolFrames> = { anthropic, openai };
