import { CLIENT_PATH, clientMetadata } from "../agents/tools/client-metadata.ts";
import type { Config } from "../config/config.ts";
import { VERSION } from "../observe/version.ts";
import { unavailable } from "../rules/failure.ts";
import { hostOf, isSecure, originOf } from "./headers.ts";
import type { Route, Routes } from "./http.ts";
import { failureResponse } from "./responses.ts";
import type { Services } from "./services.ts";
import { createWebClient, permissionsPolicy } from "./web.ts";

export interface RouteOptions {
  services: Services;
  /** Rejects while the store or the bus cannot be reached. */
  ready(): Promise<unknown>;
  /** Background work that fails, while calls are served. */
  failing(): readonly string[];
}

/** Everything that is fetched with GET: the web client, the reference, health checks and metrics. */
export function createRoutes(options: RouteOptions): Routes {
  const { services } = options;
  const { config, log } = services;
  const web = createWebClient(log);

  const own = new Map<string, Route>([
    ["/health", () => Response.json({ ok: true, version: VERSION })],
    ["/ready", () => readiness(options)],
    ["/api/limits", () => Response.json({ ok: true, result: shownLimits(config) })],
    ["/openapi.json", openApi],
    ["/asyncapi.json", (request) => asyncApi(request, config)],
    [CLIENT_PATH, (request) => toolClient(request, config)],
    ["/docs", docsPage],
  ]);
  if (!config.metrics) own.set("/metrics", () => metricsResponse(services));
  return { get: (path) => own.get(path) ?? web.get(path), missing: web.missing };
}

/** Tells authorization servers of tool servers who Parley is. */
function toolClient(request: Request, { proxies }: Config): Response {
  const base = originOf(request, "", proxies).base ?? "";
  return Response.json({ client_id: `${base}${CLIENT_PATH}`, ...clientMetadata(base) });
}

/** The limits as clients see them: a server without a storage of files takes none in a message. */
const shownLimits = ({ limits, files }: Config) =>
  files ? limits : { ...limits, files_per_message: 0 };

/** The reference is loaded with the first request for it, so that others do not start more slowly. */
const reference = () => import("./reference/index.ts");

async function docsPage(): Promise<Response> {
  const { documents, referencePolicy } = await reference();
  return new Response(documents.page(), {
    headers: {
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-cache",
      "content-security-policy": referencePolicy,
      "permissions-policy": permissionsPolicy,
    },
  });
}

async function openApi(): Promise<Response> {
  const { documents } = await reference();
  const headers = { "content-type": "application/json", "cache-control": "no-cache" };
  return new Response(documents.openApi(), { headers });
}

/** The AsyncAPI document, with the host and protocol of the request as the server's address. */
async function asyncApi(request: Request, { proxies }: Config): Promise<Response> {
  const { documents, HOST_PLACEHOLDER } = await reference();
  const text = isSecure(request, proxies) ? documents.secureAsyncApi() : documents.asyncApi();
  const headers = { "content-type": "application/json", vary: "host, x-forwarded-proto" };
  return new Response(text.replace(HOST_PLACEHOLDER, hostOf(request)), { headers });
}

/** The metrics in Prometheus' text format. */
export const metricsResponse = ({ metrics }: Pick<Services, "metrics">) =>
  new Response(metrics.text(), {
    headers: { "content-type": "text/plain; version=0.0.4; charset=utf-8" },
  });

async function readiness({ services, ready, failing }: RouteOptions): Promise<Response> {
  try {
    await ready();
    const failed = failing();
    return Response.json({ ok: true, ...(failed.length > 0 && { failing: failed }) });
  } catch (error) {
    services.log.warn({ err: error }, "not ready");
    return failureResponse(unavailable("the store or the bus cannot be reached"));
  }
}
