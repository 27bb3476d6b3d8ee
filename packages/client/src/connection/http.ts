import type { HttpFailure } from "@parley/protocol";
import { callError } from "../errors.ts";

export interface HttpOptions {
  url: string;
  timeoutMs: number;
  fetch: typeof fetch;
}

type Body = { ok: true; result?: unknown } | HttpFailure;

/** Makes a call as `POST /api/<operation>`. */
export async function callHttp(
  { url, timeoutMs, fetch }: HttpOptions,
  name: string,
  input: object,
  token: string | null,
): Promise<unknown> {
  const body = await post(fetch, `${url}/api/${name}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(token !== null && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(input),
    signal: AbortSignal.timeout(timeoutMs),
  });
  if (body.ok) return body.result;
  throw callError(body.code, body.description, body.parameters);
}

async function post(send: typeof fetch, url: string, request: RequestInit): Promise<Body> {
  try {
    const response = await send(url, request);
    const body: unknown = await response.json().catch(() => null);
    if (isBody(body)) return body;
    // The response is from a proxy, not from the service.
    throw new Error(`the response is not from the service: status ${response.status}`);
  } catch (cause) {
    throw callError("unavailable", "the service could not be reached", { cause });
  }
}

const isBody = (body: unknown): body is Body =>
  typeof body === "object" &&
  body !== null &&
  "ok" in body &&
  (body.ok === true || (body.ok === false && "code" in body));
