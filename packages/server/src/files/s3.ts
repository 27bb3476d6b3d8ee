import { rm } from "node:fs/promises";
import { S3Client } from "bun";
import type { S3Options } from "../config/file-storage.ts";
import { unavailable } from "../rules/failure.ts";
import { untilAborted } from "../security/guarded-fetch.ts";
import type { Blobs } from "./blobs.ts";

const PART_BYTES = 5 * 1024 * 1024;

/** Keeps objects in a bucket of an S3-compatible service. `incoming` is an existing folder. */
export function openS3Blobs(options: S3Options, incoming: string): Blobs {
  const { prefix, timeoutMs, ...connection } = options;
  const reachable = <Result>(request: Promise<Result>, ms = timeoutMs) => withTimeout(request, ms);
  const client = new S3Client(connection);
  const keyOf = (name: string) => prefix + name;

  return {
    incoming,
    async put(name, path) {
      const options = { type: "application/octet-stream", partSize: PART_BYTES, queueSize: 2 };
      await reachable(client.write(keyOf(name), Bun.file(path), options), 3 * timeoutMs);
      await rm(path, { force: true });
    },
    async open(name) {
      const file = client.file(keyOf(name));
      const found = await reachable(file.stat().catch(missing));
      if (!found) return null;
      return {
        size: found.size,
        stream: async (range) =>
          (range
            ? file.slice(range.start, range.end)
            : file
          ).stream() as ReadableStream<Uint8Array>,
      };
    },
    async delete(name) {
      await reachable(client.delete(keyOf(name)).catch(missing));
    },
    async *list() {
      let continuationToken: string | undefined;
      do {
        const next = continuationToken !== undefined && { continuationToken };
        const page = await reachable(client.list({ prefix, ...next }));
        for (const { key, size = 0, lastModified } of page.contents ?? []) {
          const modifiedAt = Date.parse(lastModified ?? "");
          yield { name: key.slice(prefix.length), size, modifiedAt };
        }
        continuationToken = page.nextContinuationToken;
      } while (continuationToken !== undefined);
    },
  };
}

function missing(error: unknown): null {
  if ((error as { code?: string }).code === "NoSuchKey") return null;
  throw error;
}

/** Bun's client has no timeouts. A request that takes longer counts as failed. */
async function withTimeout<Result>(request: Promise<Result>, timeoutMs: number): Promise<Result> {
  const deadline = AbortSignal.timeout(timeoutMs);
  try {
    return await untilAborted(request, deadline);
  } catch (error) {
    if (error === deadline.reason) throw unavailable("the file storage does not answer");
    const { name, code } = error as { name?: string; code?: string };
    throw name === "S3Error" ? unavailable(`the file storage failed (${code})`) : error;
  }
}
