/** Which supplied addresses the server may contact. */

import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { badField } from "../rules/failure.ts";
import { isPublicAddress } from "./address.ts";

/** Why a request to an address that somebody supplied failed. */
export type FetchErrorCode =
  /** Not an address that can be requested: no URL, neither https nor allowed http, credentials inside. */
  | "address_invalid"
  /** The name cannot be resolved. */
  | "address_unknown"
  /** The name or address belongs to a private or special range. */
  | "address_refused"
  /** The connection could not be made or broke, or the certificate or the response is not valid. */
  | "connection_failed"
  | "timeout"
  | "request_too_large"
  | "response_too_large"
  /** The response is a redirect, which is not followed. */
  | "redirected"
  /** The response is compressed, although that was not asked for. */
  | "response_encoded";

/**
 * Its message may be shown to the person who supplied the address: it names neither the address that a
 * name leads to nor the path and query, which may contain secrets.
 */
export class FetchError extends Error {
  override name = "FetchError";
  readonly code: FetchErrorCode;

  constructor(code: FetchErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** Returns all IP addresses of a name, the preferred one first. */
export type Resolve = (hostname: string) => Promise<readonly string[]>;

export interface DestinationPolicy {
  /** Whether private and special addresses may be contacted, also by plain http. */
  readonly allowPrivate: boolean;
  /** The resolver of the operating system if omitted. */
  readonly resolve?: Resolve;
}

/** A supplied address, checked, and the one IP address that it is contacted at. */
export interface Destination {
  readonly url: URL;
  readonly ip: string;
}

const MAX_ADDRESS_CHARACTERS = 2048;

/**
 * Checks an address that somebody supplied, and resolves its name. Throws a `FetchError` if it must not
 * be contacted. The result holds for one request: a name may lead elsewhere the next time.
 */
export async function checkDestination(
  address: string | URL,
  { allowPrivate, resolve = systemResolve }: DestinationPolicy,
): Promise<Destination> {
  const url = parseAddress(address);
  if (url.protocol === "http:" && !allowPrivate) throw notHttps();
  const addresses = await addressesOf(url.hostname, resolve);
  const [ip] = addresses;
  if (ip === undefined) throw new FetchError("address_unknown", "the name cannot be resolved");
  // One private address among public ones is enough: no honest name has such a mixture.
  if (!allowPrivate && !addresses.every(isPublicAddress)) {
    throw new FetchError("address_refused", "the address belongs to a private or special range");
  }
  if (url.protocol === "http:" && isPublicAddress(ip)) throw notHttps();
  return { url, ip };
}

/** Throws `bad_request` if a field `url` must not be contacted, unless for the accepted reason. */
export async function checkUrlField(url: string, allowPrivate: boolean, accepted?: FetchErrorCode) {
  try {
    await checkDestination(url, { allowPrivate });
  } catch (error) {
    if (!(error instanceof FetchError)) throw error;
    if (error.code !== accepted) throw badField("url", `cannot be used: ${error.message}`);
  }
}

function parseAddress(address: string | URL): URL {
  const url = String(address).length <= MAX_ADDRESS_CHARACTERS ? URL.parse(address) : null;
  if (url === null) throw new FetchError("address_invalid", "the address is not a valid URL");
  if (url.protocol !== "https:" && url.protocol !== "http:") throw notHttps();
  if (url.username !== "" || url.password !== "") {
    throw new FetchError("address_invalid", "the address must not contain credentials");
  }
  return url;
}

const notHttps = () => new FetchError("address_invalid", "the address must begin with https://");

/** The URL parser has already converted every notation of an IP address to the usual one. */
async function addressesOf(hostname: string, resolve: Resolve): Promise<readonly string[]> {
  const literal = hostname.replace(/^\[(.*)\]$/, "$1");
  if (isIP(literal)) return [literal];
  const addresses = await resolve(hostname);
  return addresses.filter((address) => isIP(address) && !address.includes("%"));
}

const systemResolve: Resolve = async (hostname) => {
  // A name that cannot be resolved has no addresses.
  const found = await lookup(hostname, { all: true, order: "verbatim" }).catch(() => []);
  return found.map(({ address }) => address);
};
