import { type AddressInfo, createServer, type Socket } from "node:net";
import type { ProtocolName } from "../../server/src/agents/providers/index.ts";

/** A request as it arrived. */
interface Received {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: Record<string, unknown>;
  protocol: ProtocolName;
  /** Resolves when the connection is closed, by whichever side. */
  closed: Promise<void>;
}

/** One request and the means to answer it, down to the bytes. */
interface Exchange {
  request: Received;
  wire: Wire;
  head(status: number, headers?: Record<string, string>): Promise<void>;
  /** Sends one chunk, and returns when the system has taken it. */
  write(chunk: string | Uint8Array): Promise<void>;
  end(): Promise<void>;
  /** Breaks the connection. */
  cut(): void;
  /** Does nothing until the client goes away. */
  stall(): Promise<void>;
}

/** How to answer one request. */
export type Scene = (exchange: Exchange) => Promise<void> | void;

/**
 * A provider on a port of its own that speaks both protocols, decided by the path. Each request
 * is answered by the next scene; the last one answers all that follow.
 */
export async function startProvider(...scenes: Scene[]) {
  const requests: Received[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    closed.then(() => sockets.delete(socket));
    socket.on("error", () => {});
    readRequests(socket, closed, (request) => {
      requests.push(request);
      const scene = scenes[Math.min(requests.length, scenes.length) - 1];
      if (!scene) throw new Error("no scene to play");
      void play(scene, socket, request);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function play(scene: Scene, socket: Socket, request: Received): Promise<void> {
  // A client that goes away in the middle of a scene is what some tests are about.
  await Promise.resolve(scene(exchangeOn(socket, request))).catch(() => {});
}

function exchangeOn(socket: Socket, request: Received): Exchange {
  const send = (bytes: string | Uint8Array) =>
    new Promise<void>((resolve, reject) => {
      if (socket.destroyed) reject(new Error("the client is gone"));
      else socket.write(bytes, (error) => (error ? reject(error) : resolve()));
    });
  return {
    request,
    wire: wires[request.protocol],
    head: (status, headers = {}) => send(headOf(status, headers)),
    write: (chunk) => send(chunked(chunk)),
    end: () => send("0\r\n\r\n"),
    cut: () => void socket.destroy(),
    stall: () => request.closed,
  };
}

function headOf(status: number, headers: Record<string, string>): string {
  const fields = {
    "content-type": "text/event-stream; charset=utf-8",
    "transfer-encoding": "chunked",
    ...headers,
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Status\r\n${lines.join("")}\r\n`;
}

function chunked(chunk: string | Uint8Array): Uint8Array {
  const bytes = Buffer.from(chunk);
  return Buffer.concat([
    Buffer.from(`${bytes.length.toString(16)}\r\n`),
    bytes,
    Buffer.from("\r\n"),
  ]);
}

function readRequests(
  socket: Socket,
  closed: Promise<void>,
  receive: (request: Received) => void,
): void {
  let pending = Buffer.alloc(0);
  socket.on("data", (bytes: Buffer) => {
    pending = Buffer.concat([pending, bytes]);
    const headLength = pending.indexOf("\r\n\r\n");
    if (headLength < 0) return;
    const [start = "", ...fields] = pending.subarray(0, headLength).toString().split("\r\n");
    const headers = Object.fromEntries(fields.map(readField));
    const end = headLength + 4 + Number(headers["content-length"] ?? 0);
    if (pending.length < end) return;
    const body = JSON.parse(pending.subarray(headLength + 4, end).toString());
    pending = pending.subarray(end);
    const [method = "", path = ""] = start.split(" ");
    const protocol = path.includes("/messages") ? "anthropic" : "openai";
    receive({ method, path, headers, body, protocol, closed });
  });
}

function readField(line: string): [string, string] {
  const colon = line.indexOf(":");
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
}

/** The frames of one protocol, written after the providers' own documentation. */
export interface Wire {
  begin: string;
  text(text: string): string;
  thinking: string;
  /** Says why the model stopped, and what was used. */
  end(reason: "stop" | "length" | "refused", outputTokens?: number): string;
  /** An error inside the stream. */
  error(type: string): string;
  /** The body of an error answer. */
  errorBody(type: string, message: string): string;
}

const unnamed = (data: unknown) => `data: ${JSON.stringify(data)}\n\n`;
const named = (type: string, data: object) => `event: ${type}\n${unnamed({ type, ...data })}`;

const anthropicReason = { stop: "end_turn", length: "max_tokens", refused: "refusal" };
const anthropic: Wire = {
  begin:
    named("message_start", {
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
    named("content_block_start", { index: 0, content_block: { type: "text", text: "" } }) +
    named("ping", {}),
  text: (text) => named("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
  thinking: named("content_block_delta", {
    index: 0,
    delta: { type: "thinking_delta", thinking: "Let me see …" },
  }),
  end: (reason, output_tokens = 15) =>
    named("content_block_stop", { index: 0 }) +
    named("message_delta", {
      delta: { stop_reason: anthropicReason[reason], stop_sequence: null },
      usage: { output_tokens },
    }) +
    named("message_stop", {}),
  error: (type) => named("error", { error: { type, message: "raw words of the provider" } }),
  errorBody: (type, message) => JSON.stringify({ type: "error", error: { type, message } }),
};

const chunk = (delta: object, finish_reason: string | null = null) =>
  unnamed({
    id: "chatcmpl-123",
    object: "chat.completion.chunk",
    created: 1694268190,
    model: "test-model",
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    usage: null,
  });

const openaiReason = { stop: "stop", length: "length", refused: "content_filter" };
const openai: Wire = {
  begin: chunk({ role: "assistant", content: "", refusal: null }),
  text: (content) => chunk({ content }),
  thinking: chunk({ reasoning_content: "Let me see …" }),
  end: (reason, completion_tokens = 15) =>
    chunk({}, openaiReason[reason]) +
    unnamed({
      id: "chatcmpl-123",
      object: "chat.completion.chunk",
      created: 1694268190,
      model: "test-model",
      choices: [],
      usage: { prompt_tokens: 25, completion_tokens, total_tokens: 25 + completion_tokens },
    }) +
    "data: [DONE]\n\n",
  error: (type) => unnamed({ error: { message: "raw words of the provider", type, code: null } }),
  errorBody: (type, message) =>
    JSON.stringify({ error: { message, type, param: null, code: null } }),
};

const wires: Record<ProtocolName, Wire> = { anthropic, openai };

/** The head and the first frames, without text. */
const begin = async ({ head, write, wire }: Exchange) => {
  await head(200);
  await write(wire.begin);
};

const say = async (exchange: Exchange, texts: string[]) => {
  await begin(exchange);
  for (const text of texts) await exchange.write(exchange.wire.text(text));
};

/** A whole answer. */
export const answers =
  (...texts: string[]): Scene =>
  async (exchange) => {
    await say(exchange, texts);
    await exchange.write(exchange.wire.end("stop"));
    await exchange.end();
  };

/** A short answer that is as dear as the request allows. */
export const spendsAll: Scene = async (exchange) => {
  await say(exchange, ["Dear."]);
  await exchange.write(exchange.wire.end("stop", Number(exchange.request.body.max_tokens)));
  await exchange.end();
};

/** A whole answer that ends for another reason. */
export const endsWith =
  (reason: "length" | "refused", ...texts: string[]): Scene =>
  async (exchange) => {
    await say(exchange, texts);
    await exchange.write(exchange.wire.end(reason));
    await exchange.end();
  };

/** A whole answer, every byte of it in a packet of its own. */
export const answersByteByByte =
  (...texts: string[]): Scene =>
  async ({ head, write, end, wire }) => {
    await head(200);
    const frames = wire.begin + texts.map(wire.text).join("") + wire.end("stop");
    for (const byte of Buffer.from(frames)) await write(Uint8Array.of(byte));
    await end();
  };

export const thinksThenAnswers =
  (thoughts: number, text: string): Scene =>
  async (exchange) => {
    await begin(exchange);
    for (let each = 0; each < thoughts; each++) await exchange.write(exchange.wire.thinking);
    await exchange.write(exchange.wire.text(text) + exchange.wire.end("stop"));
    await exchange.end();
  };

export const cutsBeforeHead: Scene = ({ cut }) => cut();

export const cutsAfterHead: Scene = async ({ head, cut }) => {
  await head(200);
  cut();
};

/**
 * Breaks the connection after some text, on a cue: a client may lose what it has not yet read
 * when the connection breaks.
 */
export const cutsAfter =
  (cue: Promise<unknown>, ...texts: string[]): Scene =>
  async (exchange) => {
    await say(exchange, texts);
    await cue;
    exchange.cut();
  };

/** Ends the stream in good order, but without saying that the model stopped. */
export const stopsShortAfter =
  (...texts: string[]): Scene =>
  async (exchange) => {
    await say(exchange, texts);
    await exchange.end();
  };

export const stallsBeforeHead: Scene = ({ stall }) => stall();

export const stallsAfterHead: Scene = async ({ head, stall }) => {
  await head(200);
  await stall();
};

/** Goes silent after its first frames and some text, or before any. */
export const stallsAfter =
  (...texts: string[]): Scene =>
  async (exchange) => {
    await say(exchange, texts);
    await exchange.stall();
  };

/** Says that the model stopped, and then neither closes nor breaks the stream. */
export const stallsAfterEnd =
  (...texts: string[]): Scene =>
  async (exchange) => {
    await say(exchange, texts);
    await exchange.write(exchange.wire.end("stop"));
    await exchange.stall();
  };

export const sendsGarbageAfter =
  (...texts: string[]): Scene =>
  async (exchange) => {
    await say(exchange, texts);
    await exchange.write('data: {"raw words of the provider": \n\n');
    await exchange.end();
  };

/** A success that is no stream of events at all. */
export const sendsPage: Scene = async ({ head, write, end }) => {
  await head(200, { "content-type": "text/html" });
  await write("<html><body>raw words of the provider</body></html>\n\n");
  await end();
};

export const reportsErrorAfter =
  (type: string, ...texts: string[]): Scene =>
  async (exchange) => {
    await say(exchange, texts);
    await exchange.write(exchange.wire.error(type));
    await exchange.end();
  };

/** Goes on for as long as somebody reads, with one frame or with the next of a text. */
export const neverEnds =
  (frame: (wire: Wire) => string): Scene =>
  async (exchange) => {
    await begin(exchange);
    for (;;) await exchange.write(frame(exchange.wire));
  };

/** An error answer in the protocol's own shape. */
export const fails =
  (
    status: number,
    error: { type?: string; message?: string; headers?: Record<string, string> } = {},
  ): Scene =>
  async ({ head, write, end, wire }) => {
    const { type = "some_error", message = "raw words of the provider" } = error;
    await head(status, { "content-type": "application/json", ...error.headers });
    await write(wire.errorBody(type, message));
    await end();
  };

/** Where the agents of a server under test find their models; both protocols are spoken. */
export const providersAt = (url: string, changes: Record<string, unknown> = {}) => ({
  PARLEY_PROVIDERS: JSON.stringify({
    claude: {
      display_name: "Claude",
      protocol: "anthropic",
      base_url: url,
      model: "model-a",
      ...changes,
    },
    gpt: {
      display_name: "GPT",
      protocol: "openai",
      base_url: `${url}/v1`,
      model: "model-o",
      ...changes,
    },
  }),
});

/** A call that waits for a test to answer it by hand, word by word. */
export interface HeldCall {
  readonly request: Received;
  says(...texts: string[]): Promise<void>;
  /** Ends the answer in good order. */
  ends(): Promise<void>;
  /** Breaks the connection. */
  cuts(): void;
}

function heldCall(exchange: Exchange): HeldCall {
  let begun: Promise<void> | null = null;
  const { request, write, wire } = exchange;
  const started = () => {
    begun ??= begin(exchange);
    return begun;
  };
  return {
    request,
    async says(...texts) {
      await started();
      for (const text of texts) await write(wire.text(text));
    },
    async ends() {
      await started();
      await write(wire.end("stop"));
      await exchange.end();
    },
    cuts: () => exchange.cut(),
  };
}

export const keyOf = ({ headers }: Received): string =>
  headers["x-api-key"] ?? (headers.authorization ?? "").replace(/^Bearer /, "");

/**
 * A provider for many tests at once, which it tells apart by their keys. A key's calls are answered
 * by the scenes it was given, as in `startProvider`; without any they wait to be answered by hand.
 */
export async function startStage() {
  const scenes = new Map<string, Scene[]>();
  const held = new Map<string, HeldCall[]>();
  const takers = new Map<string, ((call: HeldCall) => void)[]>();
  const listed = <Item>(map: Map<string, Item[]>, key: string) => {
    const list = map.get(key) ?? [];
    map.set(key, list);
    return list;
  };
  const provider = await startProvider((exchange) => {
    const key = keyOf(exchange.request);
    const program = listed(scenes, key);
    const scene = program.length > 1 ? program.shift() : program[0];
    if (scene) return scene(exchange);
    const call = heldCall(exchange);
    const taker = listed(takers, key).shift();
    if (taker) taker(call);
    else listed(held, key).push(call);
    return exchange.stall();
  });
  return {
    ...provider,
    play: (key: string, ...program: Scene[]) => void scenes.set(key, program),
    /** What has been asked with a key. */
    calls: (key: string) => provider.requests.filter((request) => keyOf(request) === key),
    /** The next call with a key, to be answered by hand. */
    next: (key: string): Promise<HeldCall> => {
      const call = listed(held, key).shift();
      if (call) return Promise.resolve(call);
      return new Promise((resolve) => listed(takers, key).push(resolve));
    },
  };
}
