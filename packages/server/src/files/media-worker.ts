/// <reference lib="webworker" />
import { parseFile } from "music-metadata";
import type { MediaReply } from "./media.ts";

declare const self: DedicatedWorkerGlobalScope;

async function duration(path: string): Promise<MediaReply> {
  try {
    const { format } = await parseFile(path, { skipCovers: true, skipPostHeaders: true });
    return Number.isFinite(format.duration) ? (format.duration ?? null) : null;
  } catch {
    // Damaged, or of a kind that has no duration.
    return null;
  }
}

self.postMessage(await duration(process.argv[2] ?? ""));
