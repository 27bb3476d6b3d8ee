import type { Invoke } from "../calls/invoke.ts";
import { type CountedRate, chargeBytes } from "../calls/rates.ts";
import type { Logger } from "../observe/log.ts";
import { Failure, failure, forbidden, internalError, notFound } from "../rules/failure.ts";
import { ACTS_FOR } from "../security/authenticate.ts";
import type { AgentCaller, AnyCaller, Origin } from "../security/caller.ts";
import { connectionClosed, readJson, readText } from "./body.ts";
import { fileRoute } from "./files.ts";
import { bearer, originAllowed, originOf, utf8Header, withHeaders } from "./headers.ts";
import { MCP_BOUNDS, type Mcp } from "./mcp/index.ts";
import { failureResponse, methodNotAllowed, successText } from "./responses.ts";
import type { Services } from "./services.ts";
import type { UnsentAnswers } from "./unsent-answers.ts";

/** Answers GET requests to a path that is no operation: a page of the web client, a document, metrics. */
export type Route = (request: Request) => Promise<Response> | Response;

export interface Routes {
  get(path: string): Route | undefined;
  /** The web page for people who follow a link to a path without a route; undefined for other requests. */
  missing(path: string, request: Request): Promise<Response> | undefined;
}

export interface HttpOptions {
  services: Services;
  invoke: Invoke;
  mcp: Pick<Mcp, "serve">;
  routes: Routes;
  /** Upgrades a request to a socket. Resolves to undefined if it did. */
  upgrade(request: Request, origin: Origin): Promise<Response | undefined>;
  unsent: UnsentAnswers;
}

const CALL_PREFIX = "/api/";

/** `parts`: what the groups of the pattern have found in the path. */
type Place = readonly [
  pattern: RegExp,
  method: "GET" | "POST",
  answer: (
    request: Request,
    origin: Origin,
    parts: readonly string[],
  ) => Promise<Response | undefined>,
];

export function createHttp({ services, invoke, mcp, routes, upgrade, unsent }: HttpOptions) {
  const { config, log, rates, authenticator, incomingHooks, exports, files } = services;

  const places: readonly Place[] = [
    [/^\/api\/ws$/, "GET", upgrade],
    [/^\/mcp$/, "POST", serveMcp],
    // Where other programs post: `/hooks/<id>/<secret>`.
    [/^\/hooks\/([^/]{1,64})\/([^/]{1,128})$/, "POST", postToHook],
    // Where people download their own data: `/exports/<token>`.
    [/^\/exports\/([\w.-]{1,256})$/, "GET", download],
  ];

  function route(request: Request, origin: Origin) {
    const { method } = request;
    const path = pathOf(request.url);
    for (const [pattern, allowed, answer] of places) {
      const found = pattern.exec(path);
      if (!found) continue;
      return method === allowed
        ? answer(request, origin, found.slice(1))
        : methodNotAllowed(allowed);
    }
    const file = fileRoute(files, path, request);
    if (file) return file;
    const found = routes.get(path);
    if (found) {
      return method === "GET" || method === "HEAD" ? found(request) : methodNotAllowed("GET");
    }
    const missing = routes.missing(path, request);
    if (missing) return missing;
    if (!path.startsWith(CALL_PREFIX)) throw notFound("page");
    if (method !== "POST") return methodNotAllowed("POST");
    return call(path.slice(CALL_PREFIX.length), request, origin);
  }

  /** Some senders, such as Alertmanager, accept no other answer than the text `ok`. */
  async function postToHook(request: Request, { network }: Origin, parts: readonly string[]) {
    const [id = "", secret = ""] = parts;
    const body = () => readText(request, config.limits.frame_bytes);
    await incomingHooks.post({ id, secret, network, body });
    return new Response("ok", { headers: { "content-type": "text/plain; charset=utf-8" } });
  }

  /** The link has everything that the download needs, so that a browser can follow it. */
  async function download(_request: Request, _origin: Origin, [token = ""]: readonly string[]) {
    const { filename, body } = await exports.open(token);
    return new Response(body, {
      headers: {
        "content-type": "application/zip",
        "content-disposition": `attachment; filename="${filename}"`,
        "referrer-policy": "no-referrer",
      },
    });
  }

  async function call(name: string, request: Request, origin: Origin): Promise<Response> {
    const request_id = Bun.randomUUIDv7();
    let caller: AnyCaller | AgentCaller | undefined;
    const ignored: string[] = [];
    let rate: CountedRate | undefined;
    const outcome = await invoke({
      name,
      reference: () => request_id,
      origin,
      authenticate: async () => {
        caller = await authenticate(request, origin);
        return caller;
      },
      signal: () => request.signal,
      input: () =>
        readJson(request, config.limits.frame_bytes, {
          onRead: (received) => chargeBytes(rates, caller ?? origin, { received }),
        }),
      ignores: (fields) => ignored.push(...fields),
      rated: (counted) => {
        rate = counted;
      },
    });
    const response = outcome.ok
      ? answerWith(successText(outcome.result), caller, origin)
      : failureResponse(outcome.failure);
    response.headers.set("x-request-id", request_id);
    if (ignored.length > 0) response.headers.set("parley-ignored", ignored.join(", "));
    if (rate) setRateHeaders(response.headers, rate);
    return response;
  }

  /** Charges the caller for an answer, and sends it as fast as it is read. */
  function answerWith(
    text: string,
    caller: AnyCaller | AgentCaller | undefined,
    origin: Origin,
    init?: ResponseInit,
  ): Response {
    chargeBytes(rates, caller ?? origin, { sent: Buffer.byteLength(text) });
    const key = !caller || caller.kind === "service" ? origin.network : `${caller.account.id}`;
    return unsent.json(key, text, init);
  }

  /** Calls tools, by the Model Context Protocol. Without sessions there is nothing to GET or DELETE. */
  async function serveMcp(request: Request, origin: Origin): Promise<Response> {
    const caller = await authenticate(request, origin);
    if (!originAllowed(request, config)) throw forbidden("this origin is not allowed");
    const body = await readJson(request, config.limits.frame_bytes, {
      bounds: MCP_BOUNDS,
      onRead: (received) => chargeBytes(rates, caller, { received }),
    });
    const response = await mcp.serve({ request, body, caller, origin });
    const type = response.headers.get("content-type") ?? "";
    if (!type.startsWith("application/json")) return response;
    const text = await response.text();
    const headers = new Headers(response.headers);
    headers.delete("content-length");
    return answerWith(text, caller, origin, { status: response.status, headers });
  }

  /** The caller of a request: a person or an agent by their token, or a service key. */
  function authenticate(request: Request, origin: Origin): Promise<AnyCaller | AgentCaller> {
    const actsFor = utf8Header(request, ACTS_FOR);
    const isFromBrowser = request.headers.has("origin");
    const token = bearer(request);
    return authenticator.authenticateRequest({ token, actsFor, isFromBrowser }, origin);
  }

  return async (request: Request, peer: string): Promise<Response | undefined> => {
    if (!hasValidHost(request)) {
      const refusal = failure("bad_request", "the Host header is not a valid host");
      return withHeaders(failureResponse(refusal), request, config);
    }
    const origin = originOf(request, peer, config.proxies);
    if (request.method === "OPTIONS") {
      return withHeaders(new Response(null, { status: 204 }), request, config);
    }
    try {
      const response = await route(request, origin);
      return response && withHeaders(response, request, config);
    } catch (error) {
      return withHeaders(failed(error, request, log), request, config);
    }
  };
}

function failed(error: unknown, { signal, method, url }: Request, log: Logger): Response {
  if (error instanceof Failure) return failureResponse(error);
  if (signal.aborted || (error instanceof Error && error.name === "AbortError")) {
    // A client that closes its connection is no failure of the server; nobody reads the response.
    return failureResponse(connectionClosed());
  }
  const request_id = Bun.randomUUIDv7();
  // The rest of the path may have a secret.
  const route = pathOf(url).split("/")[1];
  log.error({ err: error, request_id, method, route }, "request failed");
  const response = failureResponse(internalError(request_id));
  response.headers.set("x-request-id", request_id);
  return response;
}

/** As in draft-ietf-httpapi-ratelimit-headers: a full bucket is the quota of a window. */
function setRateHeaders(headers: Headers, { name, throttle, key }: CountedRate): void {
  const left = throttle.left(key);
  if (!left) return;
  headers.set("ratelimit-policy", `"${name}";q=${left.burst};w=${left.windowSeconds}`);
  headers.set("ratelimit", `"${name}";r=${left.tokens};t=${left.fullInSeconds}`);
}

/** Requests of HTTP/1.0, such as health checks of load balancers, may have no Host header. */
const hasValidHost = ({ url, headers }: Request) => !headers.get("host") || URL.canParse(url);

/**
 * The path of a request's URL, without the cost of parsing the rest of it. Bun's URL of a request
 * without a Host header is only the path and the query.
 */
export function pathOf(url: string): string {
  const start = url.startsWith("/") ? 0 : url.indexOf("/", url.indexOf("://") + 3);
  const query = url.indexOf("?", start);
  return url.slice(start, query === -1 ? undefined : query);
}
