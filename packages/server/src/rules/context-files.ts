import type { File, Message } from "@parley/protocol";
import { isTextType } from "./files.ts";
import type { FilePart, ImagePart } from "./model-content.ts";
import { quoteName } from "./quoting.ts";
import { estimateTokens } from "./token-estimate.ts";

/** How many files of each kind the model sees: the newest ones of its context. */
const MAX_SHOWN = { image: 5, text: 10, document: 3 };
type ShownKind = keyof typeof MAX_SHOWN;

/** Larger pictures are not decoded for a model. */
const MAX_IMAGE_FILE_BYTES = 32 << 20;
/** Of all documents of a request together: providers limit the size of a request to 32 MB. */
const MAX_DOCUMENT_BYTES = 12 << 20;

const IMAGE_TYPE = /^image\/(jpeg|png|webp|gif)$/;

/** The content of a file, prepared for a model. */
export type LoadedFile =
  | {
      readonly status: "shown";
      readonly part: ImagePart | FilePart;
      readonly tokens: number;
      /** Whether the part has only the beginning of the file. */
      readonly isCut: boolean;
    }
  /** `unavailable`: there are no bytes, or the storage did not answer in time. */
  | { readonly status: "empty" | "unavailable" | "unreadable" | "too_long" };

/** How the model sees a file of a message. */
export interface FileView {
  /** What the message says about it. */
  readonly line: string;
  readonly parts: readonly (ImagePart | FilePart)[];
  /** Estimated, of the line and the parts. */
  readonly tokens: number;
  /** The content is to be shown, and is not loaded yet. */
  readonly isUnloaded: boolean;
}

/** The view of a file whose content may take at most this many tokens. */
export type ViewFile = (file: File, maxTokens: number) => FileView;

/** Chooses how the files of these messages are shown. The messages are given newest first. */
export function fileViews(
  messages: readonly Message[],
  loadedFiles: ReadonlyMap<string, LoadedFile>,
): ViewFile {
  const hidden = hiddenFiles(messages);
  return (file, maxTokens) => {
    const why = hidden.get(file.id);
    if (why !== undefined) return named(file, why);
    const loaded = loadedFiles.get(file.id);
    if (!loaded) return { ...named(file, WHY_HIDDEN.unavailable), isUnloaded: true };
    if (loaded.status !== "shown") return named(file, WHY_HIDDEN[loaded.status]);
    const line = describe(file, loaded.isCut ? "only its beginning follows" : "it follows");
    const tokens = estimateTokens(line) + loaded.tokens;
    if (tokens > maxTokens) return named(file, WHY_HIDDEN.too_long);
    return { line, parts: [loaded.part], tokens, isUnloaded: false };
  };
}

const WHY_HIDDEN = {
  other_type: "you cannot see its content",
  empty: "it is empty",
  unavailable: "it could not be loaded, so you cannot see its content",
  unreadable: "it is damaged or encrypted, so you cannot see its content",
  too_long: "it is too long for you, so you cannot see its content",
  too_large: "it is too large for you, so you cannot see its content",
};

const WHY_OLD: Record<ShownKind, string> = {
  image: `you cannot see it, because you see only the newest ${MAX_SHOWN.image} pictures`,
  text: `you cannot see its content, because you see only the newest ${MAX_SHOWN.text} text files`,
  document: `you cannot see its content, because you see only the newest ${MAX_SHOWN.document} documents`,
};

/** The files whose content is not shown, and why. The messages are given newest first. */
function hiddenFiles(messages: readonly Message[]): Map<string, string> {
  const hidden = new Map<string, string>();
  const left = { ...MAX_SHOWN };
  let documentBytes = MAX_DOCUMENT_BYTES;
  for (const file of messages.flatMap(({ files }) => files.toReversed())) {
    const kind = shownKind(file);
    if (kind === null) hidden.set(file.id, WHY_HIDDEN.other_type);
    else if (isTooLarge(file, kind, documentBytes)) hidden.set(file.id, WHY_HIDDEN.too_large);
    else if (left[kind] === 0) hidden.set(file.id, WHY_OLD[kind]);
    else {
      left[kind]--;
      if (kind === "document") documentBytes -= file.size;
    }
  }
  return hidden;
}

/**
 * Why a file that the model asks for is not shown, beside what is loaded already; null if it can be
 * loaded.
 */
export function whyNotShown(file: File, loaded: ReadonlyMap<string, LoadedFile>): string | null {
  const kind = shownKind(file);
  if (kind === null) return WHY_HIDDEN.other_type;
  const documents = [...loaded.values()].reduce((sum, each) => sum + documentSize(each), 0);
  return isTooLarge(file, kind, MAX_DOCUMENT_BYTES - documents) ? WHY_HIDDEN.too_large : null;
}

const documentSize = (file: LoadedFile) =>
  file.status === "shown" && shownKind({ type: file.part.media_type }) === "document"
    ? file.part.data.length
    : 0;

/** How a model can see a file of this type; null if it cannot. */
export function shownKind({ type }: Pick<File, "type">): ShownKind | null {
  if (IMAGE_TYPE.test(type)) return "image";
  if (type === "application/pdf") return "document";
  return isTextType(type) ? "text" : null;
}

/** No text is too large: the beginning of a long one is shown. */
function isTooLarge({ size }: File, kind: ShownKind, documentBytes: number): boolean {
  if (kind === "text") return false;
  return size > (kind === "image" ? MAX_IMAGE_FILE_BYTES : documentBytes);
}

function named(file: File, why: string): FileView {
  const line = describe(file, why);
  return { line, parts: [], tokens: estimateTokens(line), isUnloaded: false };
}

function describe({ name, type, size, width, height }: File, state: string): string {
  const pixels = width === null || height === null ? "" : `, ${width} × ${height} pixels`;
  return `(file ${quoteName(name)}, ${type}${pixels}, ${size} bytes; ${state})`;
}
