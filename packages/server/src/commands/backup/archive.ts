import { createHash } from "node:crypto";
import { open } from "node:fs/promises";
import { z } from "zod";
import { VERSION } from "../../observe/version.ts";
import { appendObjects, Digest, type ObjectFigures, objectsIn, verified } from "./objects.ts";
import { appendEntry, contentOf, endArchive, type PlacedEntry, readEntries } from "./tar.ts";

/** Since format 2 an archive may have the bytes of files. */
const FORMAT = 2;
const MANIFEST = "manifest.json";
/** More than a manifest ever has: the limit keeps a forged archive from filling the memory. */
const MAX_MANIFEST_BYTES = 1_000_000;

/** The files that a backup may contain. */
export const DATABASE = "parley.db";
export const MASTER_KEY = "master.key";
export const INVITE_CODE = "invite-code";

const BackupFile = Digest.extend({ name: z.enum([DATABASE, MASTER_KEY, INVITE_CODE]) });
type BackupFile = z.infer<typeof BackupFile>;

const Manifest = z.object({
  format: z.int().min(1).max(FORMAT),
  version: z.string(),
  schema: z.int().positive(),
  created_at: z.iso.datetime(),
  accounts: z.int().nonnegative(),
  messages: z.int().nonnegative(),
  files: z.array(BackupFile),
});
export type Manifest = z.infer<typeof Manifest>;

/** Reports how many bytes of how many were processed. */
export type Progress = (done: number, total: number) => void;

export interface ArchiveContent {
  readonly schema: number;
  readonly accounts: number;
  readonly messages: number;
  /** The paths of the files by their names in the archive. */
  readonly files: readonly { readonly name: BackupFile["name"]; readonly path: string }[];
}

/** The bytes of files that belong into an archive. */
export interface ArchiveObjects {
  readonly folder: string;
  readonly blobs: readonly string[];
  readonly progress: Progress;
}

/** Writes an archive with a manifest, and syncs it to disk. */
export async function writeArchive(
  path: string,
  { files, ...content }: ArchiveContent,
  objects: ArchiveObjects | null,
  progress: Progress,
): Promise<ObjectFigures | null> {
  const listed: BackupFile[] = [];
  for (const file of files) listed.push({ name: file.name, ...(await digestOf(file.path)) });
  const created_at = new Date().toISOString();
  const manifest: Manifest = {
    format: FORMAT,
    version: VERSION,
    created_at,
    ...content,
    files: listed,
  };
  const text = Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`);
  const total = listed.reduce((sum, { bytes }) => sum + bytes, 0);
  await using archive = await open(path, "wx", 0o600);
  await appendEntry(archive, { name: MANIFEST, bytes: text.length }, [text]);
  const counted = counter(total, progress);
  for (const [place, { name, bytes }] of listed.entries()) {
    const source = Bun.file(files[place]?.path ?? "").stream();
    await appendEntry(archive, { name, bytes }, counted(source));
  }
  const figures =
    objects && (await appendObjects(archive, objects.folder, objects.blobs, objects.progress));
  await endArchive(archive);
  await archive.sync();
  return figures;
}

export async function digestOf(path: string) {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of Bun.file(path).stream()) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { bytes, sha256: hash.digest("hex") };
}

/** Passes chunks on and reports how many bytes have passed, over all of its uses together. */
function counter(total: number, progress: Progress) {
  let done = 0;
  return async function* counted(chunks: AsyncIterable<Uint8Array>) {
    for await (const chunk of chunks) {
      yield chunk;
      done += chunk.length;
      progress(done, total);
    }
  };
}

/** Opens an archive and checks its structure. The content is checked as it is read. */
export async function openArchive(path: string, progress: Progress) {
  const [first, ...entries] = await readEntries(path);
  const manifest = await readManifest(path, first);
  const count = manifest.files.length;
  const found = entries.slice(0, count).map(({ name, bytes }) => `${name} ${bytes}`);
  const listed = manifest.files.map(({ name, bytes }) => `${name} ${bytes}`);
  if (found.join() !== listed.join() || new Set(listed).size !== listed.length) {
    throw new Error("the archive does not have the files that its manifest lists");
  }
  const total = entries.reduce((sum, { bytes }) => sum + bytes, 0);
  const counted = counter(total, progress);
  const files = manifest.files.map((file, place) =>
    verified(path, file, entries[place] as PlacedEntry, counted),
  );
  return { manifest, files, objects: await objectsIn(path, entries.slice(count)) };
}

async function readManifest(path: string, entry: PlacedEntry | undefined): Promise<Manifest> {
  if (entry?.name !== MANIFEST || entry.bytes > MAX_MANIFEST_BYTES) {
    throw new Error("it is not a backup that Parley made");
  }
  const text = await new Response(contentOf(path, entry)).text();
  // A manifest that is no JSON is reported below.
  const json: unknown = await Promise.try(() => JSON.parse(text)).catch(() => null);
  const { format = 0 } = z.object({ format: z.number() }).safeParse(json).data ?? {};
  if (format > FORMAT)
    throw new Error("a newer version of Parley made it; restore it with that version");
  const parsed = Manifest.safeParse(json);
  if (!parsed.success) throw new Error("its manifest cannot be read");
  return parsed.data;
}

/** Reads the whole archive. Throws if anything in it differs from its manifest. */
export async function verifyArchive(path: string, progress: Progress): Promise<Manifest> {
  const { manifest, files, objects } = await openArchive(path, progress);
  for (const { read } of [...files, ...objects]) await read(async () => undefined);
  return manifest;
}
