import type { WebFile } from "../../../web/build.ts";
import type { Logger } from "../observe/log.ts";
import { notFound } from "../rules/failure.ts";
import type { Route, Routes } from "./http.ts";
import { loadWebFiles } from "./web-files.ts";

/** The content security policy of the web client: it loads from this service only. */
const webPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  // Placeholders are data URLs, and pictures that are not uploaded yet have object URLs.
  "img-src 'self' data: blob:",
  "media-src 'self'",
  "font-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "form-action 'self'",
].join("; ");

/** Turns off browser features that no page of this service uses. */
export const permissionsPolicy =
  "camera=(), microphone=(), geolocation=(), payment=(), usb=(), display-capture=()";

const INDEX = "/index.html";
/** Paths of the client's views, all of which are served with the index page. */
const VIEWS =
  /^\/(?:(?:c\/[\w-]+|agents|settings|waiting|sign-in|reset-password|oauth\/tool-servers\/callback|operate(?:\/(?:accounts|reports|audit))?)\/?)?$/;

type Encoding = "br" | "gzip" | "identity";
interface Served {
  type: string;
  etag: string;
  bodies: Record<Encoding, Uint8Array<ArrayBuffer>>;
}

/** The pages and files of the web client. */
export function webClient(log: Logger): Routes {
  const files = lazyFiles(log);

  async function serve(path: string, request: Request, status = 200): Promise<Response> {
    const file = (await files()).get(path);
    if (!file) throw notFound("page");
    return respond(request, path, file, status);
  }

  return {
    get(path): Route | undefined {
      if (VIEWS.test(path)) return (request) => serve(INDEX, request);
      const isFile = path.startsWith("/assets/") || path === "/service-worker.js";
      return isFile ? (request) => serve(path, request) : undefined;
    },
    missing: (path, request) =>
      isNavigation(path, request) ? serve(INDEX, request, 404) : undefined,
  };
}

/** Loads the files on the first request, so that a service without visitors does not pay for it. */
function lazyFiles(log: Logger): () => Promise<Map<string, Served>> {
  let loading: Promise<Map<string, Served>> | undefined;
  return () => {
    loading ??= loadWebFiles(log).then(
      (files) => new Map(files.map((file) => [file.path, served(file)])),
      (error) => {
        // The next request tries again.
        loading = undefined;
        throw error;
      },
    );
    return loading;
  };
}

const served = ({ type, plain, gzip, brotli }: WebFile): Served => ({
  type,
  etag: `"${Bun.hash(plain).toString(36)}"`,
  bodies: { identity: plain, gzip, br: brotli },
});

/** Whether a browser navigates to the path, rather than a program fetching a file or calling an operation. */
function isNavigation(path: string, { method, headers }: Request): boolean {
  const isRead = method === "GET" || method === "HEAD";
  const isFile = /\.\w+$/.test(path);
  const wantsPage = headers.get("accept")?.includes("text/html") ?? false;
  return isRead && wantsPage && !isFile && !path.startsWith("/api/");
}

function respond(
  request: Request,
  path: string,
  { type, etag, bodies }: Served,
  status: number,
): Response {
  // The names of assets contain a hash of their content, so they never change.
  const isAsset = path.startsWith("/assets/");
  const headers = new Headers({
    "content-type": type,
    "cache-control": isAsset ? "public, max-age=31536000, immutable" : "no-cache",
    etag,
    vary: "accept-encoding",
  });
  if (!isAsset) {
    headers.set("content-security-policy", webPolicy);
    headers.set("permissions-policy", permissionsPolicy);
    headers.set("referrer-policy", "no-referrer");
    headers.set("cross-origin-opener-policy", "same-origin");
  }
  if (status === 200 && request.headers.get("if-none-match")?.includes(etag)) {
    return new Response(null, { status: 304, headers });
  }
  const encoding = acceptedEncoding(request.headers.get("accept-encoding") ?? "");
  if (encoding !== "identity") headers.set("content-encoding", encoding);
  return new Response(bodies[encoding], { status, headers });
}

function acceptedEncoding(header: string): Encoding {
  const names = header.split(",").map((each) => each.trim().split(";")[0]);
  if (names.includes("br")) return "br";
  return names.includes("gzip") ? "gzip" : "identity";
}
