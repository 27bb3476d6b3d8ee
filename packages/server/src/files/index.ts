import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { FileStorage } from "../config/file-storage.ts";
import type { Blobs } from "./blobs.ts";

const OWNER_ONLY = 0o700;

/** Opens the storage of files. Backends are imported only when configured. */
export async function openBlobs(storage: FileStorage, dataFolder: string): Promise<Blobs> {
  if (storage.kind === "disk") {
    const { diskBlobs } = await import("./disk.ts");
    return diskBlobs(storage.folder);
  }
  const incoming = join(dataFolder, "files", "incoming");
  await mkdir(incoming, { recursive: true, mode: OWNER_ONLY });
  const { s3Blobs } = await import("./s3.ts");
  return s3Blobs(storage.options, incoming);
}

/** Opens the storage for reading, and creates nothing. Null if there is none. */
export async function existingBlobs(storage: FileStorage | null): Promise<ReadableBlobs | null> {
  if (!storage) return null;
  if (storage.kind === "disk") {
    if (!existsSync(join(storage.folder, "incoming"))) return null;
    const { diskBlobs } = await import("./disk.ts");
    return diskBlobs(storage.folder);
  }
  const { s3Blobs } = await import("./s3.ts");
  return s3Blobs(storage.options, "");
}

export type ReadableBlobs = Pick<Blobs, "open" | "list">;
