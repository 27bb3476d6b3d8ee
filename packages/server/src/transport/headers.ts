import type { Config } from "../config/config.ts";
import { badField } from "../rules/failure.ts";
import { networkOf } from "../security/address.ts";
import type { Origin } from "../security/caller.ts";

export const bearer = (request: Request): string | null =>
  /^Bearer\s+(\S+)\s*$/i.exec(request.headers.get("authorization") ?? "")?.[1] ?? null;

export const SUBPROTOCOL = "parley";

/** The subprotocols that a client offers for a socket. */
export const subprotocols = (request: Request): string[] =>
  (request.headers.get("sec-websocket-protocol") ?? "").split(",").map((name) => name.trim());

/** The token that follows the subprotocol: pages cannot set headers, and addresses end up in logs. */
export function subprotocolToken(request: Request): string | null {
  const [name, token] = subprotocols(request);
  return name === SUBPROTOCOL && token !== undefined ? token : null;
}

/**
 * The value of a header whose bytes are UTF-8; throws `bad_request` if they are not. The runtime returns
 * each byte as a character.
 */
export function utf8Header(request: Request, name: string): string | null {
  const value = request.headers.get(name);
  if (value === null) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(value, "latin1"));
  } catch {
    throw badField(name, "must be UTF-8");
  }
}

/** Whether pages of the request's web origin may use the service: its own, and the configured ones. */
export function originAllowed(request: Request, { origins }: Config): boolean {
  const origin = request.headers.get("origin");
  if (origin === null || origins.includes("*") || origins.includes(origin)) return true;
  return URL.canParse(origin) && new URL(origin).host === request.headers.get("host");
}

/** Adds the headers that every response has. */
export function withHeaders(response: Response, request: Request, config: Config): Response {
  const { headers } = response;
  headers.set("x-content-type-options", "nosniff");
  if (!headers.has("cache-control")) headers.set("cache-control", "no-store");
  if (isSecure(request, config.proxies)) headers.set("strict-transport-security", STRICT_TRANSPORT);
  addCors(headers, request, config);
  return response;
}

/** Tells browsers to use only https, for one year. */
const STRICT_TRANSPORT = "max-age=31536000";

/** Those of calls, and those of the Model Context Protocol. */
const ALLOWED_HEADERS =
  "authorization, content-type, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id";

function addCors(headers: Headers, request: Request, config: Config): void {
  // Also without an origin: caches must not answer other pages with this response.
  headers.append("vary", "origin");
  const origin = request.headers.get("origin");
  if (origin === null) return;
  if (!originAllowed(request, config)) return;
  headers.set("access-control-allow-origin", origin);
  headers.set(
    "access-control-expose-headers",
    "x-request-id, retry-after, parley-ignored, ratelimit, ratelimit-policy, content-range, content-disposition, etag",
  );
  if (request.method !== "OPTIONS") return;
  headers.set("access-control-allow-methods", "GET, POST, PUT");
  headers.set("access-control-allow-headers", ALLOWED_HEADERS);
  headers.set("access-control-max-age", "86400");
}

/** The client of a request; `proxies` is the number of trusted proxies that append to X-Forwarded-For. */
export function originOf(request: Request, peer: string, proxies: number): Origin {
  const address = clientAddress(request, peer, proxies);
  return {
    address,
    network: networkOf(address),
    base: `${isSecure(request, proxies) ? "https" : "http"}://${hostOf(request)}`,
    user_agent: boundedUserAgent(request.headers.get("user-agent")),
  };
}

/** The peer's address, or the address that the outermost trusted proxy appended. */
function clientAddress(request: Request, peer: string, proxies: number): string {
  if (proxies === 0) return peer;
  const forwarded = (request.headers.get("x-forwarded-for") ?? "").split(",");
  return (forwarded.at(-proxies)?.trim() || peer).slice(0, 64);
}

const HOST = /^[\w.-]+(:\d+)?$|^\[[\da-f:.]+\](:\d+)?$/i;

/** The host that a request names, with its port. */
export function hostOf({ headers }: Request): string {
  const host = headers.get("host") ?? "";
  return HOST.test(host) ? host : "localhost";
}

/**
 * Whether the client uses https, as a trusted proxy says. The last value is the proxy's: a proxy that
 * appends to the header passes on what the client sent before it.
 */
export const isSecure = ({ headers }: Request, proxies: number): boolean =>
  proxies > 0 && headers.get("x-forwarded-proto")?.split(",").at(-1)?.trim() === "https";

const USER_AGENT_CHARACTERS = 256;

/** The User-Agent header as it is stored and logged: one line, truncated. */
export function boundedUserAgent(given: string | null): string | null {
  const text = (given ?? "")
    .slice(0, 4 * USER_AGENT_CHARACTERS)
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ")
    .trim();
  return [...text].slice(0, USER_AGENT_CHARACTERS).join("") || null;
}
