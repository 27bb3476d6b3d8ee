import { failures } from "./failures.ts";
import type { ProviderError } from "./provider.ts";
import { dig } from "./wire.ts";

/** What a provider says of an error. Used to tell errors apart, never shown. */
interface Reported {
  status?: number | undefined;
  retryAfterMs?: number | undefined;
  /** The machine-readable names, such as `overloaded_error` or `context_length_exceeded`. */
  names: string;
  message: string;
}

const tooLong =
  /context.{0,12}(length|window|size|limit)|(prompt|input|request) (is )?too (long|large)|too many tokens|reduce the length|exceeds? the (maximum|limit).{0,20}token|input token count|maximum prompt length/i;
const tooLongName = /context_length|exceed_context|request_too_large|string_above_max_length/;
const noCredit = /credit balance|insufficient (balance|credit|funds)|exceeded your current quota/i;
const noCreditName = /insufficient_quota|billing/;
const badKeyName = /authentication|permission_error|invalid_api_key/;

/** An error answer of the provider, by its status and what its body says. */
export function httpError(response: Response, body: string): ProviderError {
  const { status } = response;
  if (status >= 300 && status < 400) return failures.redirected(status);
  const retryAfterMs = retryAfter(response.headers);
  return classify({ status, retryAfterMs, ...reported(jsonOrNothing(body)) });
}

/** An error that the provider reports inside a stream which began well. */
export function streamError(event: unknown): ProviderError {
  const code = dig(event, "error", "code") ?? dig(event, "code");
  return classify({ status: typeof code === "number" ? code : undefined, ...reported(event) });
}

function classify(error: Reported): ProviderError {
  const { status, names, retryAfterMs } = error;
  if (noCreditName.test(names) || noCredit.test(error.message) || status === 402)
    return failures.quotaUsedUp(status);
  if (status === 401 || status === 403 || badKeyName.test(names))
    return failures.keyRejected(status);
  if (status === 413 || tooLongName.test(names)) return failures.tooLong(status);
  if (status === 429 || /rate_limit/.test(names)) return failures.rateLimited(status, retryAfterMs);
  if ((status ?? 400) < 500 && tooLong.test(error.message)) return failures.tooLong(status);
  if (status === 404 || /not_found/.test(names)) return failures.unknownModel(status);
  if (status !== undefined && status < 500 && status !== 408)
    return failures.requestRefused(status);
  if (/invalid_request|content_policy|content_filter/.test(names))
    return failures.requestRefused(status);
  return failures.overloaded(status, retryAfterMs);
}

/** Both protocols nest the error; vLLM puts it at the top, and some servers send only a string. */
function reported(body: unknown): Pick<Reported, "names" | "message"> {
  const nested = dig(body, "error");
  const error = typeof nested === "object" && nested !== null ? nested : body;
  const message = dig(error, "message") ?? nested;
  return {
    names: `${dig(error, "type")} ${dig(error, "code")}`,
    message: typeof message === "string" ? message : "",
  };
}

function jsonOrNothing(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function retryAfter(headers: Headers): number | undefined {
  const ms = number(headers.get("retry-after-ms"));
  if (ms !== undefined) return ms;
  const value = headers.get("retry-after");
  const seconds = number(value);
  if (seconds !== undefined) return seconds * 1000;
  const date = Date.parse(value ?? "");
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}

const number = (value: string | null): number | undefined =>
  value !== null && /^\d+(\.\d+)?$/.test(value.trim()) ? Number(value) : undefined;
