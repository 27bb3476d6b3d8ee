import { networkOf } from "../security/address.ts";
import type { Origin } from "../security/caller.ts";

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
