export { isSandboxKey } from "../../rules/sandbox.ts";

import { pause } from "../providers/pause.ts";
import type { ModelFetch } from "../providers/stream.ts";
import { type Dialect, dialectOf } from "./dialects.ts";
import { type Asked, readRequest } from "./request.ts";
import { type AnswerScript, type ErrorScript, scriptFor } from "./script.ts";

/**
 * The built-in model. It stands in for `fetch` in a call, so that everything a provider's answer
 * goes through is gone through here too, and it has no means of reaching the network.
 */
export const sandboxFetch: ModelFetch = makeSandboxFetch();

/** `speed` multiplies the pace of its words; at infinity it does not pause. */
export function makeSandboxFetch({ speed = 1 } = {}): ModelFetch {
  return async (url, init) => {
    init.signal?.throwIfAborted();
    const dialect = dialectOf(url);
    if (!dialect || typeof init.body !== "string") return new Response(null, { status: 404 });
    const asked = readRequest(init.body);
    const script = scriptFor(asked);
    if (script.kind === "error") return errorResponse(dialect, script);
    const frames = speak(dialect, asked, script, paceMaker(speed, init.signal));
    const headers = { "content-type": "text/event-stream; charset=utf-8" };
    return new Response(streamOf(frames), { headers });
  };
}

type Rest = (ms: number) => Promise<void>;

function paceMaker(speed: number, signal: AbortSignal | null | undefined): Rest {
  const heeded = signal ?? new AbortController().signal;
  return async (ms) => {
    heeded.throwIfAborted();
    if (ms / speed > 0) await pause(ms / speed, heeded);
  };
}

function errorResponse(dialect: Dialect, script: ErrorScript): Response {
  const headers = { "retry-after": String(script.retryAfter) };
  return Response.json(dialect.error(script), {
    status: script.status,
    ...(script.retryAfter === undefined ? {} : { headers }),
  });
}

async function* speak(dialect: Dialect, asked: Asked, script: AnswerScript, rest: Rest) {
  const words = script.text.match(/\s*\S+/g) ?? [];
  const spoken = words.slice(0, asked.maxTokens);
  await rest(0);
  yield dialect.begin(asked);
  for (const [index, word] of spoken.entries()) {
    await rest(index === 0 ? 0 : script.pace);
    yield dialect.text(asked, word);
  }
  if (script.end === "cut")
    throw new Error("the sandbox breaks the connection, as it was asked to");
  const end = spoken.length < words.length ? "length" : script.end;
  yield dialect.end(asked, spoken.join(""), end);
}

/** Frames as bytes, produced only as they are read. */
function streamOf(frames: AsyncGenerator<string, void>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    async pull(controller) {
      const frame = await frames.next();
      if (frame.done) controller.close();
      else controller.enqueue(encoder.encode(frame.value));
    },
    async cancel() {
      await frames.return();
    },
  });
}
