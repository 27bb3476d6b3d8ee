import { isIP } from "node:net";
import {
  checkDestination,
  type Destination,
  type DestinationPolicy,
  FetchError,
} from "./destination.ts";

export interface GuardedFetchOptions extends DestinationPolicy {
  /** PEM certificates of authorities to trust instead of the usual ones. */
  readonly ca?: string;
}

export interface GuardedRequest {
  readonly method?: string;
  readonly headers?: HeadersInit;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  /** The deadline for everything: resolving, connecting, sending, and reading the whole body. */
  readonly timeoutMs?: number;
  readonly maxRequestBytes?: number;
  readonly maxResponseBytes?: number;
  readonly signal?: AbortSignal;
  /**
   * Whether to keep the connection for later requests that also allow it. They use it if they lead to
   * the same IP address and port and, with https, have the same name. If the other side closes it
   * instead of answering, the request is made again: only for requests that may arrive twice.
   */
  readonly reuseConnection?: boolean;
}

/**
 * Requests an address that somebody supplied.
 *
 * - The name is resolved once, and the connection is made to that very IP address. Certificate and
 *   `Host` header are those of the name. Nothing else, such as a proxy of the environment or, without
 *   `reuseConnection`, a connection that is still open, is used.
 * - Redirects are not followed: the response is the redirect.
 * - Compressed responses are not decompressed: reading such a body fails with `response_encoded`.
 * - Reading a body beyond `maxResponseBytes` fails with `response_too_large`. What nobody reads is not
 *   received. A caller that does not need the body cancels it, which closes the connection unless the
 *   body has been received.
 *
 * Throws a `FetchError`, also from the body; after an abort by `signal` its reason.
 */
export type GuardedFetch = (address: string | URL, request?: GuardedRequest) => Promise<Response>;

const DEFAULT_TIMEOUT_MS = 10_000;
const DEFAULT_MAX_BYTES = 1_048_576;

/** Forgetting destinations is harmless: a request that fails there is not made again. */
const MAX_REUSABLE = 1000;

export function createGuardedFetch(options: GuardedFetchOptions): GuardedFetch {
  /** The destinations that may have kept a connection open. */
  const reusable = new Set<string>();
  return async (address, request = {}) => {
    const body = encodeBody(request);
    const deadline = AbortSignal.timeout(request.timeoutMs ?? DEFAULT_TIMEOUT_MS);
    const signal = AbortSignal.any([deadline, ...(request.signal ? [request.signal] : [])]);
    const toFailure = (error: unknown) => failureOf(error, deadline, request.signal);
    try {
      signal.throwIfAborted();
      const destination = await untilAborted(checkDestination(address, options), signal);
      const prepared = { ...request, body, signal };
      const response = request.reuseConnection
        ? await connectOrReuse(destination, prepared, options, reusable)
        : await connect(destination, prepared, options);
      return bounded(response, request.maxResponseBytes ?? DEFAULT_MAX_BYTES, toFailure);
    } catch (error) {
      throw toFailure(error);
    }
  };
}

function encodeBody({ body, maxRequestBytes = DEFAULT_MAX_BYTES }: GuardedRequest) {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : (body ?? null);
  if (bytes !== null && bytes.byteLength > maxRequestBytes) {
    throw new FetchError("request_too_large", `the request exceeds ${maxRequestBytes} bytes`);
  }
  return bytes;
}

interface Prepared extends Pick<GuardedRequest, "method" | "headers" | "reuseConnection"> {
  readonly body: Uint8Array<ArrayBuffer> | null;
  readonly signal: AbortSignal;
}

/** Makes the request again if the connection may be one that the other side has just closed. */
async function connectOrReuse(
  destination: Destination,
  request: Prepared,
  options: GuardedFetchOptions,
  reusable: Set<string>,
): Promise<Response> {
  const key = `${destination.ip} ${destination.url.host}`;
  try {
    const response = await connect(destination, request, options);
    if (reusable.size >= MAX_REUSABLE) reusable.clear();
    reusable.add(key);
    return response;
  } catch (error) {
    if (!isReset(error) || !reusable.has(key)) throw error;
    return connect(destination, { ...request, reuseConnection: false }, options);
  }
}

const isReset = (error: unknown) =>
  error instanceof Error && "code" in error && error.code === "ECONNRESET";

function connect(
  { url, ip }: Destination,
  { method = "GET", headers: given, body, signal, reuseConnection = false }: Prepared,
  { ca }: GuardedFetchOptions,
): Promise<Response> {
  const pinned = new URL(url);
  pinned.hostname = isIP(ip) === 6 ? `[${ip}]` : ip;
  const headers = new Headers(given);
  headers.set("host", url.host);
  headers.set("accept-encoding", "identity");
  return fetch(pinned, {
    method,
    headers,
    body,
    signal,
    redirect: "manual",
    decompress: false,
    proxy: false,
    // The runtime finds a pooled connection by its IP address, port and options of TLS.
    keepalive: reuseConnection,
    // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED has no effect.
    tls: { ...serverNameOf(url), ...(ca && { ca }), rejectUnauthorized: true },
  });
}

/** The name that the certificate must have. For an IP address there is none: it must have the address. */
function serverNameOf({ hostname }: URL): { serverName?: string } {
  const isAddress = hostname.startsWith("[") || isIP(hostname) !== 0;
  return isAddress ? {} : { serverName: hostname.replace(/\.$/, "") };
}

/** The response with a body that fails beyond the limit. `toFailure` says what a failure is shown as. */
function bounded(
  { status, statusText, headers, body }: Response,
  maxBytes: number,
  toFailure: (error: unknown) => unknown,
): Response {
  if (status < 200 || status > 599) {
    throw new FetchError("connection_failed", `the response has the status ${status}`);
  }
  const reader = body?.getReader();
  if (!reader) return new Response(null, { status, statusText, headers });
  const encoding = headers.get("content-encoding")?.trim() || "identity";
  let left = maxBytes;
  const readChunk = async () => {
    if (encoding.toLowerCase() !== "identity") {
      throw new FetchError("response_encoded", "the response is compressed");
    }
    const { value } = await reader.read();
    left -= value?.byteLength ?? 0;
    if (left < 0) {
      throw new FetchError("response_too_large", `the response exceeds ${maxBytes} bytes`);
    }
    return value;
  };
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const chunk = await readChunk();
          if (chunk) controller.enqueue(chunk);
          else controller.close();
        } catch (error) {
          controller.error(toFailure(error));
          await reader.cancel();
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  return new Response(stream, { status, statusText, headers });
}

/** The beginning of a body: at most this many bytes. What is left is not received. */
export async function readStart({ body }: Response, maxBytes: number) {
  const chunks: Uint8Array[] = [];
  let left = maxBytes;
  for await (const chunk of body ?? []) {
    chunks.push(chunk.subarray(0, left));
    left -= chunk.length;
    if (left <= 0) break;
  }
  return Buffer.concat(chunks);
}

/** Waits for work that cannot be aborted itself. Rejects with the reason of the signal after an abort. */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort);
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

function failureOf(error: unknown, deadline: AbortSignal, signal: AbortSignal | undefined) {
  if (error instanceof FetchError) return error;
  if (signal?.aborted && error === signal.reason) return error;
  if (deadline.aborted) return new FetchError("timeout", "the request timed out");
  // The runtime's message contains the address with its path and query.
  const reason = error instanceof Error && "code" in error ? ` (${error.code})` : "";
  return new FetchError("connection_failed", `the connection failed${reason}`);
}
