import { notFound } from "../rules/failure.ts";
import type { FileRecord } from "../store/files.ts";
import type { Store } from "../store/store.ts";
import { type Blobs, type ByteRange, previewOf } from "./blobs.ts";

/** Types that browsers may show in place: none of them can run scripts. */
const INLINE =
  /^(?:image\/(?:jpeg|png|webp|gif)|audio\/[\w.+-]+|video\/[\w.+-]+|text\/plain(?:; charset=[\w-]+)?)$/;

export interface DownloadRequest {
  readonly fileId: string;
  readonly isPreview: boolean;
  readonly isHead: boolean;
  readonly headers: Headers;
}

/** Answers a request for the bytes of a file. Throws `not_found` if there are none. */
export async function download(
  { store, blobs }: { store: Pick<Store, "read">; blobs: Blobs },
  request: DownloadRequest,
) {
  const { headers: asked } = request;
  const [file] = await store.read((tx) => tx.files([request.fileId]));
  if (file?.status !== "ready" || file.blob === null) throw notFound("file");
  const name = request.isPreview ? previewOf(file.blob) : file.blob;
  const etag = `"${name}"`;
  const headers = { ...headersOf(file, request.isPreview), etag };
  if (matches(asked.get("if-none-match"), etag)) return { status: 304, headers, body: null };
  const blob = await blobs.open(name);
  if (!blob) throw notFound("file");
  const isRangeWanted = (asked.get("if-range") ?? etag) === etag;
  const range = isRangeWanted ? rangeOf(asked.get("range"), blob.size) : null;
  if (range === "unsatisfiable") {
    const unsatisfied = { ...headers, "content-range": `bytes */${blob.size}` };
    return { status: 416, headers: unsatisfied, body: null };
  }
  const { start, end } = range ?? { start: 0, end: blob.size };
  return {
    status: range ? 206 : 200,
    headers: {
      ...headers,
      ...(range && { "content-range": `bytes ${start}-${end - 1}/${blob.size}` }),
      "content-length": `${end - start}`,
    },
    body: request.isHead ? null : await blob.stream(range ?? undefined),
  };
}

const matches = (ifNoneMatch: string | null, etag: string) =>
  ifNoneMatch?.split(",").some((each) => [etag, `W/${etag}`, "*"].includes(each.trim())) ?? false;

/**
 * The part that a Range header asks for. Null: the whole object, because there is no such header, it
 * is not understood, or it asks for several parts, which the protocol allows to ignore.
 */
function rangeOf(header: string | null, size: number): ByteRange | "unsatisfiable" | null {
  const [, first, last] = /^bytes=(\d*)-(\d*)$/.exec(header ?? "") ?? [];
  if (first === undefined || last === undefined || first + last === "") return null;
  if (first === "") {
    const length = Math.min(Number(last), size);
    return length === 0 ? "unsatisfiable" : { start: size - length, end: size };
  }
  const start = Number(first);
  const end = last === "" ? size : Math.min(Number(last) + 1, size);
  if (last !== "" && Number(last) < start) return null;
  return start < size ? { start, end } : "unsatisfiable";
}

function headersOf({ name, type }: FileRecord, isPreview: boolean): Record<string, string> {
  const shown = isPreview ? "image/webp" : type;
  const disposition = INLINE.test(shown) ? "inline" : "attachment";
  return {
    "content-type": shown === "text/plain" ? "text/plain; charset=utf-8" : shown,
    "content-disposition": `${disposition}; ${filename(isPreview ? `${name}.webp` : name)}`,
    "content-security-policy": "sandbox; default-src 'none'",
    "cross-origin-resource-policy": "cross-origin",
    "referrer-policy": "no-referrer",
    "accept-ranges": "bytes",
  };
}

/** The name of a file in a header: readable by old clients, exact for all others (RFC 6266). */
function filename(name: string): string {
  const plain = name.replace(/[^\x20-\x7e]|["\\%]/g, "_");
  const exact = encodeURIComponent(name).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `filename="${plain}"; filename*=UTF-8''${exact}`;
}
