import type { File } from "@parley/protocol";
import type { Blobs } from "../../files/blobs.ts";
import { decodeInTurn } from "../../files/decoding.ts";
import type { Logger } from "../../observe/log.ts";
import { type LoadedFile, shownKind } from "../../rules/context-files.ts";
import { untilAborted } from "../../security/guarded-fetch.ts";
import type { FileRecord } from "../../store/files.ts";
import type { Store } from "../../store/store.ts";
import { PdfInspector } from "./pdf-pages.ts";
import { bytesToRead, type ModelLimits, maxPreparedBytes, prepareFile } from "./prepare-file.ts";
import { Semaphore } from "./semaphore.ts";

const LOAD_TIMEOUT_MS = 20_000;
/** Files that are read and prepared at once on this node. Pictures also wait for `decodeInTurn`. */
const MAX_FILES_AT_ONCE = 2;
/** Of all turns on this node together. A request has the bytes again, in base64. */
const MAX_HELD_BYTES = 64 << 20;

interface ContextFileServices {
  readonly store: Pick<Store, "read">;
  /** Null: the server has no storage of files. */
  readonly blobs: Blobs | null;
  readonly log: Logger;
  readonly timeoutMs?: number;
  readonly maxHeldBytes?: number;
}

/** The files of one turn. Disposing it releases their memory to other turns. */
export interface TurnFiles extends Disposable {
  /** By id. */
  readonly loaded: ReadonlyMap<string, LoadedFile>;
  /**
   * Loads and prepares files for a model. Those that cannot be loaded in time are `unavailable`.
   * Throws only if the turn is aborted or the store is unavailable.
   */
  load(files: readonly File[], limits: ModelLimits): Promise<void>;
}

export type ContextFiles = ReturnType<typeof createContextFiles>;

/** Loads the files that models see. Limits the memory and the work of all turns together. */
export function createContextFiles(services: ContextFileServices) {
  const { store, blobs, log, timeoutMs = LOAD_TIMEOUT_MS } = services;
  const slots = new Semaphore(MAX_FILES_AT_ONCE);
  const memory = new Semaphore(services.maxHeldBytes ?? MAX_HELD_BYTES);
  const pdfs = new PdfInspector();

  async function loadFile(
    file: File,
    record: FileRecord | undefined,
    limits: ModelLimits,
    signal: AbortSignal,
  ): Promise<LoadedFile> {
    if (!blobs || !record?.blob) return { status: "unavailable" };
    using _slot = await slots.acquire(1, signal);
    const bytes = await readBytes(blobs, record.blob, bytesToRead(file), signal);
    if (!bytes) return { status: "unavailable" };
    const prepare = () => prepareFile(file, bytes, limits, pdfs);
    if (shownKind(file) !== "image") return prepare();
    return decodeInTurn(`${record.owner_id}`, prepare, signal);
  }

  return {
    /** The signal aborts when the turn is ended elsewhere. */
    open(turn: AbortSignal): TurnFiles {
      const loaded = new Map<string, LoadedFile>();
      const held = new DisposableStack();
      const unavailable = (error: unknown): LoadedFile => {
        turn.throwIfAborted();
        log.warn({ err: error }, "file for an agent not loaded");
        return { status: "unavailable" };
      };
      return {
        loaded,
        async load(files, limits) {
          const stored = await store.read((tx) => tx.files(files.map(({ id }) => id)));
          const records = new Map(stored.map((record) => [record.id, record]));
          const signal = AbortSignal.any([turn, AbortSignal.timeout(timeoutMs)]);
          for (const { id } of files) loaded.set(id, { status: "unavailable" });
          const loadOne = async (file: File) => {
            const record = records.get(file.id);
            const found = await loadFile(file, record, limits, signal).catch(unavailable);
            loaded.set(file.id, found);
            return heldBytes(found);
          };
          try {
            const permit = held.use(await memory.acquire(sum(files.map(maxPreparedBytes)), signal));
            permit.shrink(sum(await Promise.all(files.map(loadOne))));
          } catch (error) {
            unavailable(error);
          }
        },
        [Symbol.dispose]: () => held.dispose(),
      };
    },
  };
}

/** The first bytes of an object, or all of it. Null if there is no such object. */
async function readBytes(blobs: Blobs, name: string, maxBytes: number, signal: AbortSignal) {
  const blob = await untilAborted(blobs.open(name), signal);
  if (!blob) return null;
  const end = Math.min(blob.size, maxBytes);
  if (end === 0) return new Uint8Array();
  const range = end < blob.size ? { start: 0, end } : undefined;
  const reader = (await untilAborted(blob.stream(range), signal)).getReader();
  try {
    const bytes = new Uint8Array(end);
    let length = 0;
    while (length < end) {
      const { done, value } = await untilAborted(reader.read(), signal);
      if (done) return bytes.subarray(0, length);
      bytes.set(value.subarray(0, end - length), length);
      length += value.length;
    }
    return bytes;
  } finally {
    // Not awaited: a storage that hangs would delay the turn. The bytes that were needed are read.
    reader.cancel().catch(() => {});
  }
}

const heldBytes = (file: LoadedFile) => (file.status === "shown" ? file.part.data.length : 0);

const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);
