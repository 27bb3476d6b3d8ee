import { boundedUserAgent, networkOf } from "../security/address.ts";
import type { Origin } from "../security/caller.ts";

/** The client of a request; `proxies` is the number of trusted proxies that append to X-Forwarded-For. */
export function originOf(request: Request, peer: string, proxies: number): Origin {
  const address = clientAddress(request, peer, proxies);
  return {
    address,
    network: networkOf(address),
    base: baseOf(request, proxies),
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

/** The scheme and host of a request; the scheme that a trusted proxy names, if there is one. */
function baseOf({ url, headers }: Request, proxies: number): string {
  const host = headers.get("host") ?? "";
  const forwarded = proxies > 0 ? headers.get("x-forwarded-proto") : null;
  const isSecure = (forwarded ?? url).startsWith("https");
  return `${isSecure ? "https" : "http"}://${HOST.test(host) ? host : "localhost"}`;
}
