import { statSync } from "node:fs";
import { join } from "node:path";
import { buildWeb, typeOf, type WebFile } from "../../../web/build.ts";
import { notFound } from "../rules/failure.ts";
import type { Page } from "./http.ts";

const WEB = join(import.meta.dir, "../../../web");
const DIST = join(WEB, "dist");

/** What a page of the client may do: run, show and fetch what comes from this very service. */
const webPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "form-action 'self'",
].join("; ");

/** What no page of this service needs. */
export const permissionsPolicy =
  "camera=(), microphone=(), geolocation=(), payment=(), usb=(), display-capture=()";

/** Addresses of the client's own views: all of them are the one page. */
const VIEWS = /^\/(?:(?:c\/[\w-]+|agents|settings)\/?)?$/;

type Encoding = "br" | "gzip" | "identity";
interface Served {
  type: string;
  etag: string;
  bodies: Record<Encoding, Uint8Array<ArrayBuffer>>;
}

export interface WebClient {
  /** Its file or view at a path; undefined for paths that are not its own. */
  get(path: string): Page | undefined;
  /** Its page for an address where nothing is, with status 404; undefined where no page is expected. */
  missing(path: string, request: Request): Promise<Response> | undefined;
}

export function webClient(): WebClient {
  let loading: Promise<Map<string, Served>> | undefined;
  const serve = async (path: string, request: Request, status = 200) => {
    // Built for the first visitor, so that a service which has none does not pay for it.
    loading ??= load().catch((error) => {
      loading = undefined;
      throw error;
    });
    const files = await loading;
    const file = files.get(path);
    if (!file) throw notFound("page");
    return respond(request, path, file, status);
  };
  return {
    get(path) {
      if (VIEWS.test(path)) return (request) => serve("/index.html", request);
      const isOwn = path.startsWith("/assets/") || path === "/service-worker.js";
      return isOwn ? (request) => serve(path, request) : undefined;
    },
    missing: (path, request) =>
      isVisit(path, request) ? serve("/index.html", request, 404) : undefined,
  };
}

/** Whether somebody follows a link, rather than a program asking for a file or an operation. */
function isVisit(path: string, request: Request): boolean {
  const { method, headers } = request;
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
  const page = !path.startsWith("/assets/");
  const headers = new Headers({
    "content-type": type,
    "cache-control": page ? "no-cache" : "public, max-age=31536000, immutable",
    etag,
    vary: "accept-encoding",
  });
  if (page) {
    headers.set("content-security-policy", webPolicy);
    headers.set("permissions-policy", permissionsPolicy);
    headers.set("referrer-policy", "no-referrer");
    headers.set("cross-origin-opener-policy", "same-origin");
  }
  if (status === 200 && request.headers.get("if-none-match")?.includes(etag))
    return new Response(null, { status: 304, headers });
  const encoding = accepted(request.headers.get("accept-encoding") ?? "");
  if (encoding !== "identity") headers.set("content-encoding", encoding);
  return new Response(bodies[encoding], { status, headers });
}

function accepted(offer: string): Encoding {
  const names = offer.split(",").map((each) => each.trim().split(";")[0]);
  if (names.includes("br")) return "br";
  return names.includes("gzip") ? "gzip" : "identity";
}

/** A build that was made beforehand, or one made now and kept in memory. */
async function load(): Promise<Map<string, Served>> {
  const files = isCurrent() ? await prebuilt() : await buildWeb().catch(prebuilt);
  return new Map(files.map((file) => [file.path, served(file)]));
}

const served = ({ type, plain, gzip, brotli }: WebFile): Served => ({
  type,
  etag: `"${Bun.hash(plain).toString(36)}"`,
  bodies: { identity: plain, gzip, br: brotli },
});

/** Also when it is an old one, where what a build needs is not installed: rethrows why, if there is none. */
async function prebuilt(otherwise?: unknown): Promise<WebFile[]> {
  if (changed(join(DIST, "index.html")) === 0) throw otherwise;
  const paths = [...new Bun.Glob("**/*.{html,js,css,svg,webmanifest}").scanSync(DIST)];
  return Promise.all(
    paths.map(async (path) => {
      const read = (suffix: string) => Bun.file(join(DIST, path + suffix)).bytes();
      const [plain, gzip, brotli] = await Promise.all([read(""), read(".gz"), read(".br")]);
      return { path: `/${path}`, type: typeOf(path), plain, gzip, brotli };
    }),
  );
}

/** Whether there is a build, made after the last change of what it is made of. */
function isCurrent(): boolean {
  const built = changed(join(DIST, "index.html"));
  if (built === 0) return false;
  const sources = new Bun.Glob("{web,client,protocol}/{src,public}/**/*").scanSync(join(WEB, ".."));
  return ![...sources].some((path) => changed(join(WEB, "..", path)) > built);
}

const changed = (path: string) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
