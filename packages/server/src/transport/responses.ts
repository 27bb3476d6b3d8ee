import { errorStatus, type HttpFailure } from "@parley/protocol";
import { type Failure, failure } from "../rules/failure.ts";

export const successText = (result: unknown): string =>
  JSON.stringify(result === undefined ? { ok: true } : { ok: true, result });

export const successResponse = (result: unknown) =>
  new Response(successText(result), {
    headers: { "content-type": "application/json;charset=utf-8" },
  });

export function failureResponse({ code, message, parameters }: Failure): Response {
  const status = errorStatus[code];
  const body: HttpFailure = { ok: false, error_code: status, code, description: message };
  if (parameters) body.parameters = parameters;
  const headers = new Headers();
  if (parameters?.retry_after) headers.set("retry-after", String(parameters.retry_after));
  if (code === "unauthorized") headers.set("www-authenticate", "Bearer");
  return Response.json(body, { status, headers });
}

export function methodNotAllowed(allowed: string): Response {
  const response = failureResponse(failure("method_not_allowed", `use ${allowed}`));
  response.headers.set("allow", allowed);
  return response;
}
