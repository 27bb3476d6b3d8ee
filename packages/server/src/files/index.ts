import { join } from "node:path";
import type { FileStorage } from "../config/file-storage.ts";
import type { Blobs } from "./blobs.ts";

/** Opens the storage of files. Backends are imported only when configured. */
export async function openBlobs(storage: FileStorage, dataFolder: string): Promise<Blobs> {
  if (storage.kind === "disk") {
    const { diskBlobs } = await import("./disk.ts");
    return diskBlobs(storage.folder);
  }
  const { s3Blobs } = await import("./s3.ts");
  return s3Blobs(storage.options, join(dataFolder, "files", "incoming"));
}
