import type { File } from "@parley/protocol";
import type { Blobs } from "../../files/blobs.ts";
import { decodeInTurn } from "../../files/decoding.ts";
import type { Logger } from "../../observe/log.ts";
import { type LoadedFile, shownKind } from "../../rules/context-files.ts";
import type { FileRecord } from "../../store/files.ts";
import type { Store } from "../../store/store.ts";
import { PdfInspector } from "./pdf-pages.ts";
import { bytesToRead, type ModelLimits, maxPreparedBytes, prepareFile } from "./prepare-file.ts";
import { readBytes } from "./read-bytes.ts";
import { Semaphore } from "./semaphore.ts";

/** How long a turn waits for its files. */
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

/** Loads the files that models see. Limits the memory and the work of all turns together. */
export interface ContextFiles {
  /** The signal aborts when the turn is ended elsewhere. */
  open(turn: AbortSignal): TurnFiles;
}

export function createContextFiles(services: ContextFileServices): ContextFiles {
  const slots = new Semaphore(MAX_FILES_AT_ONCE);
  const memory = new Semaphore(services.maxHeldBytes ?? MAX_HELD_BYTES);
  const pdfs = new PdfInspector();
  return { open: (turn) => new LoadedFiles({ ...services, slots, memory, pdfs }, turn) };
}

interface LoadServices extends ContextFileServices {
  readonly slots: Semaphore;
  readonly memory: Semaphore;
  readonly pdfs: PdfInspector;
}

class LoadedFiles implements TurnFiles {
  readonly loaded = new Map<string, LoadedFile>();
  readonly #services: LoadServices;
  readonly #turn: AbortSignal;
  readonly #held = new DisposableStack();

  constructor(services: LoadServices, turn: AbortSignal) {
    this.#services = services;
    this.#turn = turn;
  }

  async load(files: readonly File[], limits: ModelLimits): Promise<void> {
    const { store, memory, timeoutMs = LOAD_TIMEOUT_MS } = this.#services;
    const records = await recordsOf(store, files);
    const signal = AbortSignal.any([this.#turn, AbortSignal.timeout(timeoutMs)]);
    for (const { id } of files) this.loaded.set(id, { status: "unavailable" });
    try {
      const permit = this.#held.use(await memory.acquire(sum(files.map(maxPreparedBytes)), signal));
      const loadOne = async (file: File) => {
        const record = records.get(file.id);
        const loaded = await this.#loadFile(file, record, limits, signal).catch(this.#unavailable);
        this.loaded.set(file.id, loaded);
        return heldBytes(loaded);
      };
      permit.shrink(sum(await Promise.all(files.map(loadOne))));
    } catch (error) {
      this.#unavailable(error);
    }
  }

  [Symbol.dispose](): void {
    this.#held.dispose();
  }

  async #loadFile(
    file: File,
    record: FileRecord | undefined,
    limits: ModelLimits,
    signal: AbortSignal,
  ): Promise<LoadedFile> {
    const { blobs, slots, pdfs } = this.#services;
    if (!blobs || !record?.blob) return { status: "unavailable" };
    using _slot = await slots.acquire(1, signal);
    const bytes = await readBytes(blobs, record.blob, bytesToRead(file), signal);
    if (!bytes) return { status: "unavailable" };
    const prepare = () => prepareFile(file, bytes, limits, pdfs);
    if (shownKind(file) !== "image") return prepare();
    return decodeInTurn(`${record.owner_id}`, prepare, signal);
  }

  readonly #unavailable = (error: unknown): LoadedFile => {
    this.#turn.throwIfAborted();
    this.#services.log.warn({ err: error }, "file for an agent not loaded");
    return { status: "unavailable" };
  };
}

/** The stored records of files, by id. */
async function recordsOf(store: Pick<Store, "read">, files: readonly File[]) {
  const records = await store.read((tx) => tx.files(files.map(({ id }) => id)));
  return new Map(records.map((record) => [record.id, record]));
}

const heldBytes = (file: LoadedFile) => (file.status === "shown" ? file.part.data.length : 0);

const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);
