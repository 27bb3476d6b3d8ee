import type { FetchLike } from "@modelcontextprotocol/client";
import { boundedJson, TooComplex } from "../../security/bounded-json.ts";
import { FetchError } from "../../security/destination.ts";
import type { GuardedFetch } from "../../security/guarded-fetch.ts";
import { shareOfLoop } from "../../store/event-loop.ts";

/** Longer than any call, with the time in which a person answers a question of the server. */
const STREAM_MS = 15 * 60_000;
/** A stream of notifications, which is opened again when it ends. */
const LISTEN_MS = 30 * 60_000;
/** For small answers: of authorization servers, and to the end of a connection. */
const SHORT_MS = 10_000;

/** Large enough for a picture, though the model is told no more than its size. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
const MAX_DEPTH = 64;
/** Tools and results can be large. Other answers are validated by slow schemas. */
const LARGE_TOKENS = 50_000;
const SMALL_TOKENS = 2000;
const LARGE_METHODS = ["tools/list", "tools/call"];

/**
 * Requests of a server that are answered between two requests of the client, such as pings. Each answer
 * is a connection: a server could ask for thousands of them in one response.
 */
const MAX_REPLIES = 256;

type Sent = Parameters<GuardedFetch>[1];
type Bounds = Parameters<typeof boundedJson>[0];

export type ToolFetch = ReturnType<typeof createToolFetch>;

/**
 * The fetch of an MCP client: the guarded one, within the bounds that a tool server has. `onBroken` is
 * called when an answer ends with an error: whoever waits for it waits in vain.
 */
export function createToolFetch(
  fetch: GuardedFetch,
  onBroken: (error: unknown) => void = () => {},
) {
  let answers = 0;
  let replies = 0;

  /** Counts what the server asks for. Throws when it asks for too much. */
  function countReplies(method: string | undefined): void {
    replies = method === undefined ? replies + 1 : 0;
    if (replies <= MAX_REPLIES) return;
    const error = new TooComplex("the server sends too many requests");
    onBroken(error);
    throw error;
  }

  async function send(url: string | URL, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers);
    const isPost = init.method === "POST" && typeof init.body === "string";
    const method = isPost ? methodOf(init.body) : undefined;
    if (isPost) countReplies(method);
    const isStream = headers.get("accept")?.includes("text/event-stream") === true;
    const sent = {
      ...(init.method && { method: init.method }),
      ...(init.signal && { signal: init.signal }),
      ...bodyOf(init.body, headers),
      headers,
      timeoutMs: isStream ? (isPost ? STREAM_MS : LISTEN_MS) : SHORT_MS,
      maxResponseBytes: MAX_ANSWER_BYTES,
    };
    const maxTokens = LARGE_METHODS.includes(method ?? "") ? LARGE_TOKENS : SMALL_TOKENS;
    const bounds = { maxTokens, maxDepth: MAX_DEPTH };
    if (!isPost || headers.get("mcp-method") === LISTEN) return receive(url, sent, bounds);
    answers++;
    const onEnd = (isResumable: boolean, error?: unknown) => {
      answers--;
      if (error !== undefined) onBroken(error);
      else if (method !== undefined && !isResumable) self.onEnded(method);
    };
    const response = await receive(url, sent, bounds).catch((error) => {
      answers--;
      throw error;
    });
    if (response.body) return new Response(watched(response.body, onEnd), response);
    answers--;
    return response;
  }

  async function receive(url: string | URL, sent: Sent, bounds: Bounds): Promise<Response> {
    const response = await fetch(url, sent);
    if (response.status >= 300 && response.status < 400) {
      await response.body?.cancel();
      throw new FetchError("redirected", "the server redirects, which is not followed");
    }
    const body = response.body?.pipeThrough(boundedJson(bounds));
    return body ? new Response(body, response) : response;
  }

  const self = {
    fetch: send satisfies FetchLike,
    /** Whether a request was sent whose answer has not ended. */
    isAnswering: () => answers > 0,
    /** Called when the answer to a request with this method ends, and cannot be resumed. */
    onEnded: (_method: string): void => {},
  };
  return self;
}

/** Undefined for the answer to a request of the server. */
const methodOf = (body: unknown): string | undefined =>
  (JSON.parse(String(body)) as { method?: string }).method;

/** The method whose answer is a stream of notifications. */
const LISTEN = "subscriptions/listen";

function bodyOf(body: BodyInit | null | undefined, headers: Headers): { body?: string } {
  if (body instanceof URLSearchParams && !headers.has("content-type")) {
    headers.set("content-type", "application/x-www-form-urlencoded");
  }
  return body === null || body === undefined ? {} : { body: String(body) };
}

/** The client reconnects to an answer whose events have ids, and the server goes on with it there. */
const EVENT_ID = /^id:/m;
/** An id is at the beginning of an event, and a server that sends any begins with one. */
const SCANNED_BYTES = 1024;

function watched(
  body: ReadableStream<Uint8Array>,
  onEnd: (isResumable: boolean, error?: unknown) => void,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let isResumable = false;
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { value } = await reader.read();
          // The client parses what it gets at once.
          await shareOfLoop();
          if (value) {
            isResumable ||= EVENT_ID.test(Buffer.from(value.subarray(0, SCANNED_BYTES)).toString());
            return controller.enqueue(value);
          }
          onEnd(isResumable);
          controller.close();
        } catch (error) {
          onEnd(isResumable, error);
          controller.error(error);
        }
      },
      cancel: (reason) => {
        onEnd(true);
        return reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}
