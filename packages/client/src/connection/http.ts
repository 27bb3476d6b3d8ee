import type { HttpFailure } from "@parley/protocol";
import { callError } from "../errors.ts";

export interface HttpOptions {
  url: string;
  timeoutMs: number;
  fetch: typeof fetch;
  /** The person whom a service key acts for, as the service reads it from the header. */
  actsFor?: string;
  /** Ends the calls under way. */
  closed?: AbortSignal;
}

export const TIMEOUT_MS = 20_000;

type Body = { ok: true; result?: unknown } | HttpFailure;

/** Makes a call as `POST /api/<operation>`. */
export async function callHttp(
  { url, timeoutMs, fetch, actsFor, closed }: HttpOptions,
  name: string,
  input: object,
  token: string | null,
): Promise<unknown> {
  const { body, status } = await post(fetch, `${url}/api/${name}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...(actsFor !== undefined && { "x-parley-as": actsFor }),
    },
    body: JSON.stringify(input),
    signal: AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(closed ? [closed] : [])]),
  });
  return readReply(body, status);
}

async function post(send: typeof fetch, url: string, request: RequestInit) {
  try {
    const response = await send(url, request);
    // No JSON, or only a part of it: `readReply` rejects.
    const body: unknown = await response.json().catch(() => null);
    return { body, status: response.status };
  } catch (cause) {
    throw notReached(cause);
  }
}

/** The result in a reply of the service. Throws the error in it. */
export function readReply(body: unknown, status: number): unknown {
  if (!isBody(body)) {
    // The response is from a proxy, not from the service.
    throw notReached(new Error(`the response is not from the service: status ${status}`));
  }
  if (body.ok) return body.result;
  throw callError(body.code, body.description, body.parameters);
}

export const notReached = (cause: unknown) =>
  callError("unavailable", "the service could not be reached", { cause });

const isBody = (body: unknown): body is Body =>
  typeof body === "object" &&
  body !== null &&
  "ok" in body &&
  (body.ok === true || (body.ok === false && "code" in body));
