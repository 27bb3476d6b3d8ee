/// <reference lib="webworker" />
import { scanPdf } from "./scan-pdf.ts";

declare const self: DedicatedWorkerGlobalScope;

self.onmessage = ({ data }: MessageEvent<Uint8Array>) => {
  self.postMessage(scanPdf(Buffer.from(data.buffer, data.byteOffset, data.byteLength)));
};
