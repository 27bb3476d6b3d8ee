import { errorStatus, type HttpFailure } from "@parley/protocol";
import type { Config } from "../config.ts";
import type { Call, Invoke, Services } from "../operation.ts";
import { Failure, notFound } from "../rules/failure.ts";
import type { Origin } from "../security/caller.ts";
import { readJson } from "./body.ts";
import { originOf } from "./origin.ts";

/** A page or document that is fetched with GET. */
export type Page = (request: Request) => Promise<Response> | Response;

export interface Pages {
  /** The page at a path; undefined where there is none. */
  get(path: string): Page | undefined;
  /** What somebody sees who visits an address where nothing is; undefined for other requests. */
  missing(path: string, request: Request): Promise<Response> | undefined;
}

/** Upgrades a request to a socket: undefined when it did. */
export type Upgrade = (request: Request, origin: Origin) => Promise<Response | undefined>;

export interface HttpOptions {
  services: Services;
  invoke: Invoke;
  pages: Pages;
  upgrade: Upgrade;
}

export type Fetch = (request: Request, peer: string) => Promise<Response | undefined>;

const SOCKET_PATH = "/api/ws";

export function httpTransport({ services, invoke, pages, upgrade }: HttpOptions): Fetch {
  const { config, log } = services;

  async function route(request: Request, origin: Origin): Promise<Response | undefined> {
    const path = pathOf(request.url);
    if (path === SOCKET_PATH) {
      if (request.method !== "GET") return wrongMethod("GET");
      return upgrade(request, origin);
    }
    const page = pages.get(path);
    if (page) {
      return request.method === "GET" || request.method === "HEAD"
        ? page(request)
        : wrongMethod("GET");
    }
    const missing = pages.missing(path, request);
    if (missing) return missing;
    if (!path.startsWith("/api/")) throw notFound("page");
    if (request.method !== "POST") return wrongMethod("POST");
    return call(path.slice("/api/".length), request, origin);
  }

  async function call(name: string, request: Request, origin: Origin): Promise<Response> {
    const request_id = Bun.randomUUIDv7();
    const made: Call = {
      name,
      reference: () => request_id,
      origin,
      authenticate: () => services.authenticator.authenticate(bearer(request), origin),
      input: () => readJson(request, config.limits.frame_bytes),
    };
    const outcome = await invoke(made);
    const response = outcome.ok ? success(outcome.result) : failureResponse(outcome.failure);
    response.headers.set("x-request-id", request_id);
    return response;
  }

  return async (request, peer) => {
    const origin = originOf(request, peer, config.proxies);
    if (request.method === "OPTIONS")
      return withHeaders(new Response(null, { status: 204 }), request, config);
    try {
      const response = await route(request, origin);
      return response && withHeaders(response, request, config);
    } catch (error) {
      if (!(error instanceof Failure)) log.error({ err: error }, "request failed");
      const failure = error instanceof Failure ? error : new Failure("internal", "internal error");
      return withHeaders(failureResponse(failure), request, config);
    }
  };
}

/** Only what this transport needs of the address, without parsing all of it. */
function pathOf(url: string): string {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  const query = url.indexOf("?", start);
  return url.slice(start, query === -1 ? undefined : query);
}

export const bearer = (request: Request): string | null =>
  /^Bearer\s+(\S+)\s*$/i.exec(request.headers.get("authorization") ?? "")?.[1] ?? null;

const success = (result: unknown) =>
  Response.json(result === undefined ? { ok: true } : { ok: true, result });

export function failureResponse({ code, message, parameters }: Failure): Response {
  const status = errorStatus[code];
  const body: HttpFailure = { ok: false, error_code: status, code, description: message };
  if (parameters) body.parameters = parameters;
  const headers = new Headers();
  if (parameters?.retry_after) headers.set("retry-after", String(parameters.retry_after));
  if (code === "unauthorized") headers.set("www-authenticate", "Bearer");
  return Response.json(body, { status, headers });
}

function wrongMethod(allowed: string): Response {
  const response = failureResponse(
    new Failure("method_not_allowed", `method not allowed: use ${allowed}`),
  );
  response.headers.set("allow", allowed);
  return response;
}

/** Whether a page of this origin may talk to the service: its own pages and those configured. */
export function originAllowed(request: Request, { origins }: Config): boolean {
  const origin = request.headers.get("origin");
  if (origin === null || origins.includes("*") || origins.includes(origin)) return true;
  return URL.canParse(origin) && new URL(origin).host === request.headers.get("host");
}

/** Behind a trusted proxy that speaks TLS, browsers are told to use nothing else for a year. */
const STRICT_TRANSPORT = "max-age=31536000";

const isSecure = (request: Request, { proxies }: Config) =>
  proxies > 0 && request.headers.get("x-forwarded-proto")?.split(",").at(-1)?.trim() === "https";

function withHeaders(response: Response, request: Request, config: Config): Response {
  const origin = request.headers.get("origin");
  response.headers.set("x-content-type-options", "nosniff");
  if (!response.headers.has("cache-control")) response.headers.set("cache-control", "no-store");
  if (isSecure(request, config)) {
    response.headers.set("strict-transport-security", STRICT_TRANSPORT);
  }
  if (origin === null) return response;
  response.headers.set("vary", "Origin");
  if (!originAllowed(request, config)) return response;
  response.headers.set("access-control-allow-origin", origin);
  response.headers.set("access-control-expose-headers", "x-request-id, retry-after");
  if (request.method === "OPTIONS") {
    response.headers.set("access-control-allow-methods", "GET, POST");
    response.headers.set("access-control-allow-headers", "authorization, content-type");
    response.headers.set("access-control-max-age", "86400");
  }
  return response;
}
