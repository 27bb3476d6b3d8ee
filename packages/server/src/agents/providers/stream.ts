import { Answer } from "./answer.ts";
import { httpError } from "./classify.ts";
import { EventReader } from "./events.ts";
import { failures } from "./failures.ts";
import { Guard } from "./guard.ts";
import type { Adapter, ModelEvent, ModelRequest, WireEvent, WireRequest } from "./provider.ts";

/** The part of `fetch` that a call needs, so that something in the process can stand in for it. */
export type ModelFetch = (url: string, init: BunFetchRequestInit) => Promise<Response>;

/** How long the provider may take, in milliseconds; the time its reader takes is not counted. */
export interface Timeouts {
  /** From sending the request to the head of the answer. */
  headers: number;
  /** From the head to the first sign of the model at work. */
  firstToken: number;
  /** From one such sign to the next. */
  silence: number;
  /** From the model's end to the end of the stream, where its usage may follow. */
  tail: number;
  /** For the body of an error answer. */
  errorBody: number;
}

export interface StreamOptions {
  fetch: ModelFetch;
  timeouts: Timeouts;
  /** Awaited before what has come is looked at: it is then yielded in one piece. */
  wanted?: (() => Promise<void> | undefined) | undefined;
}

const longestErrorBody = 16 << 10;

/** With all the JSON around each token, and with thinking. */
const bytesAllowed = (maxOutputTokens: number) => maxOutputTokens * 2048 + (1 << 20);

/** One try. It yields nothing unless it came to text or to the end of the answer. */
export async function* streamAnswer(
  adapter: Adapter,
  wire: WireRequest,
  request: ModelRequest,
  { fetch, timeouts, wanted }: StreamOptions,
): AsyncGenerator<ModelEvent> {
  using guard = new Guard(request.signal);
  const body = await open(wire, guard, fetch, timeouts);
  const bytes = bytesAllowed(request.max_output_tokens);
  const reader = new EventReader(body, guard, { patience: timeouts.firstToken, bytes, wanted });
  const answer = new Answer(request.max_output_tokens);
  function hear(events: readonly WireEvent[]): void {
    for (const event of events) answer.take(event);
    if (answer.hasEnded && events.length > 0) reader.patience = timeouts.tail;
    else if (events.some(isSignOfLife)) reader.patience = timeouts.silence;
  }
  try {
    while (!answer.isTooLong) {
      const packet = await reader.next();
      if (!packet) break;
      try {
        for (const data of packet) {
          hear(adapter.parse(data));
          if (answer.isTooLong) break;
        }
      } finally {
        yield* answer.said();
      }
    }
  } catch (error) {
    // Whatever goes wrong after the model's end, the answer is whole.
    if (!answer.hasEnded || request.signal.aborted) throw error;
  }
  yield* answer.finish();
}

const isSignOfLife = (event: WireEvent) => event.type === "text" || event.type === "thinking";

async function open(
  wire: WireRequest,
  guard: Guard,
  fetch: ModelFetch,
  timeouts: Timeouts,
): Promise<ReadableStream<Uint8Array>> {
  const request = fetch(wire.url, {
    method: "POST",
    headers: wire.headers,
    body: wire.body,
    redirect: "manual",
    signal: guard.signal,
    // The limits are ours: Bun's own would end a wait that is allowed to be longer.
    timeout: false,
  });
  const response = await guard.within(timeouts.headers, request);
  if (!response.ok) throw httpError(response, await errorBody(response, guard, timeouts));
  if (response.body === null) throw failures.brokenOff();
  return response.body;
}

/** The beginning of an error answer, or nothing if it does not come: the status says enough. */
async function errorBody(response: Response, guard: Guard, timeouts: Timeouts): Promise<string> {
  if (response.body === null) return "";
  const reading = readUpTo(response.body, longestErrorBody);
  return guard.within(timeouts.errorBody, reading).catch(() => "");
}

async function readUpTo(body: ReadableStream<Uint8Array>, bytes: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let left = bytes;
  for await (const chunk of body) {
    text += decoder.decode(chunk.subarray(0, left), { stream: true });
    left -= chunk.length;
    if (left <= 0) break;
  }
  return text;
}
