import { createHash } from "node:crypto";
import type { WebFile } from "../../../web/build.ts";
import type { Logger } from "../observe/log.ts";
import { notFound } from "../rules/failure.ts";
import type { Route, Routes } from "./http.ts";
import { loadWebFiles } from "./web-files.ts";

/** The content security policy of the web client: it loads from this service only. */
const webPolicy = (page: string) =>
  [
    "default-src 'none'",
    `script-src 'self' ${hashesOf(page, "script")}`,
    `style-src 'self' ${hashesOf(page, "style")}`,
    "connect-src 'self'",
    // Placeholders are data URLs, and pictures that are not uploaded yet have object URLs.
    "img-src 'self' data: blob:",
    "media-src 'self'",
    // The preview of a PDF is a copy of the file in the page.
    "frame-src blob:",
    "font-src 'self'",
    "manifest-src 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    "form-action 'self'",
  ].join("; ");

/** What stands in the page itself: the script and the style that run before the first paint. */
const hashesOf = (page: string, tag: "script" | "style") =>
  [...page.matchAll(new RegExp(`<${tag}>(.*?)</${tag}>`, "gs"))]
    .map(([, text = ""]) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`)
    .join(" ");

/** Turns off browser features that no page of this service uses. */
export const permissionsPolicy =
  "camera=(), microphone=(), geolocation=(), payment=(), usb=(), display-capture=()";

const INDEX = "/index.html";
/** Paths of the client's views, all of which are served with the index page. */
const VIEWS =
  /^\/(?:(?:c\/[\w-]+|agents|settings(?:\/(?:security|notifications|tool-servers|data))?|waiting|sign-in|reset-password|oauth\/tool-servers\/callback|operate(?:\/(?:accounts|reports|audit))?)\/?)?$/;

type Encoding = "br" | "gzip" | "identity";
interface Served {
  type: string;
  etag: string;
  bodies: Record<Encoding, Uint8Array<ArrayBuffer>>;
}

/** The files by path, and the policy of the page. */
interface Client {
  files: Map<string, Served>;
  policy: string;
}

/** The pages and files of the web client. */
export function createWebClient(log: Logger): Routes {
  const client = lazyClient(log);

  async function serve(path: string, request: Request, status = 200): Promise<Response> {
    const { files, policy } = await client();
    const file = files.get(path);
    if (!file) throw notFound("page");
    // The names of assets contain a hash of their content, so they never change.
    const headers = path.startsWith("/assets/") ? assetHeaders : pageHeaders(policy);
    return respond(request, headers, file, status);
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
function lazyClient(log: Logger): () => Promise<Client> {
  let loading: Promise<Client> | undefined;
  return () => {
    loading ??= loadWebFiles(log).then(clientOf, (error) => {
      // The next request tries again.
      loading = undefined;
      throw error;
    });
    return loading;
  };
}

function clientOf(files: readonly WebFile[]): Client {
  const page = files.find(({ path }) => path === INDEX);
  return {
    files: new Map(files.map((file) => [file.path, served(file)])),
    policy: webPolicy(new TextDecoder().decode(page?.plain)),
  };
}

const served = ({ type, plain, gzip, brotli }: WebFile): Served => ({
  type,
  etag: `"${Bun.hash(plain).toString(36)}"`,
  bodies: { identity: plain, gzip, br: brotli },
});

const assetHeaders = { "cache-control": "public, max-age=31536000, immutable" };

const pageHeaders = (policy: string) => ({
  "cache-control": "no-cache",
  "content-security-policy": policy,
  "permissions-policy": permissionsPolicy,
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
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
  given: Record<string, string>,
  { type, etag, bodies }: Served,
  status: number,
): Response {
  const headers = new Headers({ ...given, "content-type": type, etag, vary: "accept-encoding" });
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
