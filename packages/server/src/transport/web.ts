import { createHash } from "node:crypto";
import { statSync } from "node:fs";
import { join } from "node:path";
import { buildWeb, typeOf, type WebFile } from "../../../web/build.ts";
import type { Logger } from "../observe/log.ts";
import { notFound } from "../rules/failure.ts";
import { once } from "../rules/once.ts";
import type { Route, Routes } from "./http.ts";

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

/** The pages and files of the web client. */
export function createWebClient(log: Logger): Routes {
  /** Loaded with the first request, so that a service without visitors does not pay for it. */
  const client = once(async () => {
    const loaded = await loadWebFiles(log);
    const page = loaded.find(({ path }) => path === INDEX);
    return {
      files: new Map(loaded.map((file) => [file.path, { file, etag: etagOf(file) }])),
      policy: webPolicy(new TextDecoder().decode(page?.plain)),
    };
  });

  async function serve(path: string, request: Request, status = 200): Promise<Response> {
    const { files, policy } = await client();
    const found = files.get(path);
    if (!found) throw notFound("page");
    // The names of assets contain a hash of their content, so they never change.
    const headers = path.startsWith("/assets/") ? assetHeaders : pageHeaders(policy);
    return respond(request, { ...headers, etag: found.etag }, found.file, status);
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

const etagOf = ({ plain }: WebFile) => `"${Bun.hash(plain).toString(36)}"`;

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
  given: Record<string, string> & { etag: string },
  { type, plain, gzip, brotli }: WebFile,
  status: number,
): Response {
  const headers = new Headers({ ...given, "content-type": type, vary: "accept-encoding" });
  if (status === 200 && request.headers.get("if-none-match")?.includes(given.etag)) {
    return new Response(null, { status: 304, headers });
  }
  const accepted = request.headers.get("accept-encoding") ?? "";
  const names = accepted.split(",").map((each) => each.trim().split(";")[0]);
  const encoding = (["br", "gzip"] as const).find((each) => names.includes(each));
  if (encoding) headers.set("content-encoding", encoding);
  const body = encoding ? { br: brotli, gzip }[encoding] : plain;
  return new Response(body, { status, headers });
}

const WEB = join(import.meta.dir, "../../../web");
const DIST = join(WEB, "dist");

/** The files of the web client: from `dist` if that is up to date, otherwise built now, in memory. */
async function loadWebFiles(log: Logger): Promise<WebFile[]> {
  if (isUpToDate()) return readBuild();
  try {
    return await buildWeb();
  } catch (error) {
    // Installations without the build tools serve the build they came with.
    if (builtAt() === 0) throw error;
    log.warn({ err: error }, "web client build failed, serving an earlier build");
    return readBuild();
  }
}

function readBuild(): Promise<WebFile[]> {
  const paths = [...new Bun.Glob("**/*.{html,js,css,svg,png,webmanifest}").scanSync(DIST)];
  return Promise.all(
    paths.map(async (path) => {
      const read = (suffix: string) => Bun.file(join(DIST, path + suffix)).bytes();
      const [plain, gzip, brotli] = await Promise.all([read(""), read(".gz"), read(".br")]);
      return { path: `/${path}`, type: typeOf(path), plain, gzip, brotli };
    }),
  );
}

/** Whether there is a build that is newer than all of its sources. */
function isUpToDate(): boolean {
  const built = builtAt();
  if (built === 0) return false;
  const sources = new Bun.Glob("{web,client,protocol}/{src,public}/**/*").scanSync(join(WEB, ".."));
  return ![...sources].some((path) => modifiedAt(join(WEB, "..", path)) > built);
}

const builtAt = () => modifiedAt(join(DIST, "index.html"));

/** Zero if there is no such file. */
const modifiedAt = (path: string) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
