import { askWorker } from "../../files/ask-worker.ts";
import type { PdfFacts } from "./scan-pdf.ts";

const DEADLINE_MS = 2000;
const MAX_REMEMBERED = 1000;

/** Inspects documents, and remembers what it found: a document is in the context of many turns. */
export class PdfInspector {
  readonly #remembered = new Map<string, PdfFacts>();

  /** Null if there is no answer in time. A file's bytes never change. */
  async inspect(fileId: string, bytes: Uint8Array): Promise<PdfFacts | null> {
    const remembered = this.#remembered.get(fileId);
    if (remembered) return remembered;
    // Scanning is synchronous, so a thread does it.
    const worker = new Worker(new URL("./pdf-worker.ts", import.meta.url).href);
    worker.postMessage(bytes);
    const facts = await askWorker<PdfFacts>(worker, DEADLINE_MS);
    if (!facts) return null;
    const [oldest = ""] = this.#remembered.keys();
    if (this.#remembered.size >= MAX_REMEMBERED) this.#remembered.delete(oldest);
    this.#remembered.set(fileId, facts);
    return facts;
  }
}
