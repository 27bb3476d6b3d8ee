import { type ProtocolFrames, RAW_PROVIDER_TEXT, type SentCall } from "./provider-frames.ts";
import type { Exchange, Responder } from "./provider-server.ts";

/** Sends the headers and the events before the first text. */
export async function beginAnswer({ head, write, frames }: Exchange): Promise<void> {
  await head(200);
  await write(frames.begin);
}

async function sendTexts(exchange: Exchange, texts: string[]): Promise<void> {
  await beginAnswer(exchange);
  for (const text of texts) await exchange.write(exchange.frames.text(text));
}

/** A complete answer. */
export const answers =
  (...texts: string[]): Responder =>
  async (exchange) => {
    await sendTexts(exchange, texts);
    await exchange.write(exchange.frames.end("stop"));
    await exchange.end();
  };

/** A complete answer with tool calls, after the texts if there are any. */
export const toolCalls =
  (calls: readonly SentCall[], ...texts: string[]): Responder =>
  async (exchange) => {
    const { write, end, frames } = exchange;
    await sendTexts(exchange, texts);
    await write(frames.toolCalls(calls) + frames.end("tool_use"));
    await end();
  };

/** An answer that reaches the token limit while it asks for the last of these calls. */
export const cutsOffCalls =
  (calls: readonly SentCall[]): Responder =>
  async (exchange) => {
    await beginAnswer(exchange);
    await exchange.write(exchange.frames.toolCalls(calls) + exchange.frames.end("length"));
    await exchange.end();
  };

/** A short answer that uses all output tokens that the request allows. */
export const spendsAll: Responder = async (exchange) => {
  await sendTexts(exchange, ["Dear."]);
  await exchange.write(exchange.frames.end("stop", Number(exchange.request.body.max_tokens)));
  await exchange.end();
};

/** A complete answer with another stop reason. */
export const endsWith =
  (reason: "length" | "refused", ...texts: string[]): Responder =>
  async (exchange) => {
    await sendTexts(exchange, texts);
    await exchange.write(exchange.frames.end(reason));
    await exchange.end();
  };

/** A complete answer, each byte in its own packet. */
export const answersByteByByte =
  (...texts: string[]): Responder =>
  async ({ head, write, end, frames }) => {
    await head(200);
    const bytes = frames.begin + texts.map(frames.text).join("") + frames.end("stop");
    for (const byte of Buffer.from(bytes)) await write(Uint8Array.of(byte));
    await end();
  };

export const thinksThenAnswers =
  (thoughts: number, text: string): Responder =>
  async (exchange) => {
    const { write, end, frames } = exchange;
    await beginAnswer(exchange);
    for (let sent = 0; sent < thoughts; sent++) await write(frames.thinking);
    await write(frames.text(text) + frames.end("stop"));
    await end();
  };

/** Ends the stream properly after some thoughts, but without a stop reason. */
export const thinksThenStops: Responder = async (exchange) => {
  await beginAnswer(exchange);
  await exchange.write(exchange.frames.thinking);
  await exchange.end();
};

export const cutsBeforeHead: Responder = ({ cut }) => cut();

export const cutsAfterHead: Responder = async ({ head, cut }) => {
  await head(200);
  cut();
};

/**
 * Breaks the connection after some text, when `ready` resolves: a client may lose what it has not
 * read when the connection breaks.
 */
export const cutsAfter =
  (ready: Promise<unknown>, ...texts: string[]): Responder =>
  async (exchange) => {
    await sendTexts(exchange, texts);
    await ready;
    exchange.cut();
  };

/** Ends the stream properly, but without a stop reason. */
export const stopsShortAfter =
  (...texts: string[]): Responder =>
  async (exchange) => {
    await sendTexts(exchange, texts);
    await exchange.end();
  };

export const stallsBeforeHead: Responder = ({ stall }) => stall();

export const stallsAfterHead: Responder = async ({ head, stall }) => {
  await head(200);
  await stall();
};

/** Stalls after the first events and the given texts. */
export const stallsAfter =
  (...texts: string[]): Responder =>
  async (exchange) => {
    await sendTexts(exchange, texts);
    await exchange.stall();
  };

/** Reports the end of the answer, then leaves the stream open. */
export const stallsAfterEnd =
  (...texts: string[]): Responder =>
  async (exchange) => {
    await sendTexts(exchange, texts);
    await exchange.write(exchange.frames.end("stop"));
    await exchange.stall();
  };

export const sendsGarbageAfter =
  (...texts: string[]): Responder =>
  async (exchange) => {
    await sendTexts(exchange, texts);
    await exchange.write(`data: {"${RAW_PROVIDER_TEXT}": \n\n`);
    await exchange.end();
  };

/** A successful response that is not an event stream. */
export const sendsPage: Responder = async ({ head, write, end }) => {
  await head(200, { "content-type": "text/html" });
  await write(`<html><body>${RAW_PROVIDER_TEXT}</body></html>\n\n`);
  await end();
};

export const reportsErrorAfter =
  (type: string, ...texts: string[]): Responder =>
  async (exchange) => {
    await sendTexts(exchange, texts);
    await exchange.write(exchange.frames.error(type));
    await exchange.end();
  };

/** Repeats a frame for as long as the client reads. */
export const neverEnds =
  (frame: (frames: ProtocolFrames) => string): Responder =>
  async (exchange) => {
    await beginAnswer(exchange);
    for (;;) await exchange.write(frame(exchange.frames));
  };

/** Says something, and then the same few words again and again, for as long as the client reads. */
export const goesOn =
  (beginning: string, again: string): Responder =>
  async (exchange) => {
    await sendTexts(exchange, [beginning]);
    for (;;) {
      await Bun.sleep(300);
      await exchange.write(exchange.frames.text(again));
    }
  };

/** An error response in the format of the protocol. */
export const fails =
  (
    status: number,
    error: { type?: string; message?: string; headers?: Record<string, string> } = {},
  ): Responder =>
  async ({ head, write, end, frames }) => {
    const { type = "some_error", message = RAW_PROVIDER_TEXT } = error;
    await head(status, { "content-type": "application/json", ...error.headers });
    await write(frames.errorBody(type, message));
    await end();
  };
