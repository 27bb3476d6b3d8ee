import { accessSync, constants, existsSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { existingBlobs } from "../../compose/backends.ts";
import type { Config } from "../../config/config.ts";
import { isEmpty } from "../../files/mount.ts";
import { reasonOf } from "../output.ts";
import { type Check, failed, ok, warning } from "./check.ts";
import { readStored } from "./stored.ts";

const NAME = "files";
/** Room for forty of the largest uploads by default. */
const SCARCE_BYTES = 1e9;

/** Whether the storage of files can be used. It only reads: S3 is asked for a list. */
export async function checkFileStorage(config: Config): Promise<Check[]> {
  const { files, nats } = config;
  if (!files) return [ok(NAME, nats ? "off: several nodes need PARLEY_FILES" : "off")];
  if (files.kind === "disk") return checkFolder(files.folder, config);
  const place = `s3://${files.options.bucket}/${files.options.prefix}`;
  try {
    const blobs = await existingBlobs(files);
    // The first page tells whether address, credentials and rights are correct.
    for await (const _ of blobs?.list() ?? []) break;
    return [ok(NAME, place)];
  } catch (error) {
    const todo = "Check PARLEY_FILES, the credentials, and their right to list objects.";
    return [failed(NAME, `${place} cannot be read: ${reasonOf(error)}`, todo)];
  }
}

async function checkFolder(folder: string, config: Config): Promise<Check[]> {
  const existing = existsSync(folder) ? folder : dirname(folder);
  const parent = statSync(existing, { throwIfNoEntry: false });
  // The check of the data folder says what is wrong.
  if (parent && !parent.isDirectory()) return [];
  if (parent && !canUse(existing)) {
    const todo = "Run this as the user of the server, and give that user the folder.";
    return [failed(NAME, `${existing} cannot be written`, todo)];
  }
  if (isEmpty(folder) && (await readStored(config))?.hasFiles) {
    const todo = `Mount its disk, or create the folder ${join(folder, "incoming")} to start without these files.`;
    return [failed(NAME, `${folder} is empty or missing, although people have sent files`, todo)];
  }
  if (!parent) return [ok(NAME, `${folder}, which the server creates`)];
  const { bavail, bsize } = await statfs(existing);
  const free = bavail * bsize;
  const { stored_file_bytes: most } = config.limits;
  const quota = most === 0 ? "" : `, at most ${(most / 1e9).toLocaleString("en-GB")} GB of files`;
  const found = `${folder}, ${(free / 1e9).toLocaleString("en-GB", { maximumFractionDigits: 2 })} GB free${quota}`;
  if (free > SCARCE_BYTES) return [ok(NAME, found)];
  return [warning(NAME, found, "Free space, or move the files to a larger disk.")];
}

function canUse(folder: string): boolean {
  try {
    accessSync(folder, constants.R_OK | constants.W_OK | constants.X_OK);
    return true;
  } catch {
    // The caller reports it.
    return false;
  }
}
