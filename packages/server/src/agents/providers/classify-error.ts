import { type ProviderError, providerErrors } from "./provider-errors.ts";
import { valueAt } from "./wire.ts";

/** What a provider reports about an error. Used to classify it, never shown. */
interface ReportedError {
  status?: number | undefined;
  retryAfterMs?: number | undefined;
  /** The machine-readable type and code, such as `overloaded_error` or `context_length_exceeded`. */
  names: string;
  message: string;
}

const CONTEXT_TOO_LONG_MESSAGE =
  /context.{0,12}(length|window|size|limit)|(prompt|input|request) (is )?too (long|large)|too many tokens|reduce the length|exceeds? the (maximum|limit).{0,20}token|input token count|maximum prompt length/i;
const CONTEXT_TOO_LONG_NAME =
  /context_length|exceed_context|request_too_large|string_above_max_length/;
const NO_CREDIT_MESSAGE =
  /credit balance|insufficient (balance|credit|funds)|exceeded your current quota/i;
const NO_CREDIT_NAME = /insufficient_quota|billing/;
/** How Ollama, OpenRouter, vLLM and llama.cpp say it, with different statuses. */
const NO_TOOLS_MESSAGE =
  /not support (tool|function)s?\b|endpoints found that support tool use|tool choice requires|tools param requires|unsupported param: tools/i;
const BAD_KEY_NAME = /authentication|permission_error|invalid_api_key/;
const REFUSED_NAME = /invalid_request|content_policy|content_filter/;

export function errorFromResponse({ status, headers }: Response, body: string): ProviderError {
  if (status >= 300 && status < 400) return providerErrors.redirected(status);
  return classify({ status, retryAfterMs: retryAfterMs(headers), ...readError(tryParse(body)) });
}

export function errorFromStream(event: unknown): ProviderError {
  const code = valueAt(event, "error", "code") ?? valueAt(event, "code");
  return classify({ status: typeof code === "number" ? code : undefined, ...readError(event) });
}

function classify({ status, names, message, retryAfterMs }: ReportedError): ProviderError {
  if (NO_CREDIT_NAME.test(names) || NO_CREDIT_MESSAGE.test(message) || status === 402)
    return providerErrors.quotaExceeded(status);
  if (status === 401 || status === 403 || BAD_KEY_NAME.test(names))
    return providerErrors.keyRejected(status);
  if (status === 413 || CONTEXT_TOO_LONG_NAME.test(names))
    return providerErrors.contextTooLong(status);
  if (status === 429 || /rate_limit/.test(names))
    return providerErrors.rateLimited(status, retryAfterMs);
  if ((status ?? 400) < 500 && CONTEXT_TOO_LONG_MESSAGE.test(message))
    return providerErrors.contextTooLong(status);
  if (NO_TOOLS_MESSAGE.test(message)) return providerErrors.toolsRefused(status);
  if (status === 404 || /not_found/.test(names)) return providerErrors.unknownModel(status);
  const isClientError = status !== undefined && status < 500 && status !== 408;
  if (isClientError || REFUSED_NAME.test(names)) return providerErrors.requestRefused(status);
  return providerErrors.unavailable(status, retryAfterMs);
}

/** Both protocols nest the error. vLLM has it at the top level; some servers send a string. */
function readError(body: unknown): Pick<ReportedError, "names" | "message"> {
  const nested = valueAt(body, "error");
  const error = typeof nested === "object" && nested !== null ? nested : body;
  const message = valueAt(error, "message") ?? nested;
  return {
    names: `${valueAt(error, "type")} ${valueAt(error, "code")}`,
    message: typeof message === "string" ? message : "",
  };
}

function tryParse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    // The status alone classifies the error.
    return undefined;
  }
}

function retryAfterMs(headers: Headers): number | undefined {
  const ms = toNumber(headers.get("retry-after-ms"));
  if (ms !== undefined) return ms;
  const value = headers.get("retry-after");
  const seconds = toNumber(value);
  if (seconds !== undefined) return seconds * 1000;
  const date = Date.parse(value ?? "");
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}

const toNumber = (value: string | null): number | undefined =>
  value !== null && /^\d+(\.\d+)?$/.test(value.trim()) ? Number(value) : undefined;
