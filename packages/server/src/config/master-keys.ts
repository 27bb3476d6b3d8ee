import { randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  fchownSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  writeSync,
} from "node:fs";
import { ConfigError, fileProblem } from "./setting.ts";

const MASTER_BYTES = 32;

/** Parses master keys: 32 bytes each in base64, newest first. Null if one is invalid. */
export function parseMasterKeys(text: string): Buffer[] | null {
  const keys = text
    .split(/[,\s]+/)
    .filter(Boolean)
    .map((part) => Buffer.from(part, "base64"));
  return keys.length > 0 && keys.every((key) => key.length === MASTER_BYTES) ? keys : null;
}

export const newMasterKey = () => randomBytes(MASTER_BYTES).toString("base64");

export type MasterKeyFile = ReturnType<typeof openMasterKeyFile>;

/** The installation's own master keys, in a file in the data folder that only its owner can read. */
export function openMasterKeyFile(path: string) {
  const write = (keys: string[]) => replaceFile(path, `${keys.join("\n")}\n`);
  if (!existsSync(path)) write([newMasterKey()]);
  const text = () => {
    try {
      return readFileSync(path, "utf8");
    } catch (error) {
      throw unusable(path, `cannot be read: ${fileProblem(error)}`);
    }
  };
  return {
    read(): Buffer[] {
      const keys = parseMasterKeys(text());
      if (!keys) {
        throw unusable(path, "has no master keys of 32 bytes in base64: put back the file");
      }
      return keys;
    },
    /** Adds a new key in first place. The old keys stay, to open what was sealed with them. */
    add: () => write([newMasterKey(), ...text().split(/\s+/).filter(Boolean)]),
  };
}

const unusable = (path: string, problem: string) =>
  new ConfigError(`PARLEY_MASTER_KEY is not set, and ${path} ${problem}.`);

/** Replaces the file atomically: without its master keys an installation's provider keys are lost. */
function replaceFile(path: string, text: string): void {
  const draft = `${path}.new`;
  const file = openSync(draft, "w", 0o600);
  const owner = statSync(path, { throwIfNoEntry: false });
  // Keeps the owner, so that the server can still read the file after root rotated the keys.
  if (owner) fchownSync(file, owner.uid, owner.gid);
  writeSync(file, text);
  fsyncSync(file);
  closeSync(file);
  renameSync(draft, path);
}
