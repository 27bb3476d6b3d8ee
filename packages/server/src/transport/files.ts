import type { Files } from "../files/service.ts";
import { forbidden, notFound } from "../rules/failure.ts";
import { methodNotAllowed, successResponse } from "./responses.ts";

/** `/files/<id>/<purpose>`: where the bytes of files are sent to and loaded from. */
const FILE_PATH = /^\/files\/([0-9a-f-]{36})\/(upload|content|preview)$/;
type Purpose = "upload" | "content" | "preview";

/** Answers a request for the bytes of a file; undefined for requests to other paths. */
export function fileRoute(files: Files | null, path: string, request: Request) {
  const [, id, purpose] = FILE_PATH.exec(path) ?? [];
  if (id === undefined || purpose === undefined) return;
  if (!files) throw notFound("page");
  if (purpose === "upload") {
    return request.method === "PUT" ? receive(files, id, request) : methodNotAllowed("PUT");
  }
  const isRead = request.method === "GET" || request.method === "HEAD";
  return isRead ? send(files, purpose as Purpose, id, request) : methodNotAllowed("GET");
}

async function receive(files: Files, id: string, request: Request): Promise<Response> {
  checkLink(files, "upload", id, request);
  return successResponse(await files.receive(id, request.body, request.signal));
}

async function send(files: Files, purpose: Purpose, id: string, request: Request) {
  const expires = checkLink(files, purpose, id, request);
  const { status, headers, body } = await files.download({
    fileId: id,
    isPreview: purpose === "preview",
    isHead: request.method === "HEAD",
    headers: request.headers,
  });
  const seconds = Math.max(0, expires - Math.floor(Date.now() / 1000));
  return new Response(body, {
    status,
    headers: { ...headers, "cache-control": `private, max-age=${seconds}, immutable` },
  });
}

/** When the link ends, in seconds. Throws (403) for a link that is wrong or has ended. */
function checkLink({ links }: Files, purpose: Purpose, id: string, { url }: Request): number {
  const query = new URLSearchParams(url.slice(url.indexOf("?") + 1));
  if (!links.verify(purpose, id, query)) {
    throw forbidden("this link is wrong or has expired, ask for a new one");
  }
  return Number(query.get("expires"));
}
