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
import { newMasterKey, parseMasterKeys } from "./vault.ts";

/** The installation's own master keys: a file beside the data, readable by its owner alone. */
export interface MasterKeyFile {
  read(): Buffer[];
  /** Puts a new key first; the old ones stay, to open what they sealed. */
  add(): void;
}

export function masterKeyFile(path: string): MasterKeyFile {
  const write = (keys: string[]) => replaceFile(path, `${keys.join("\n")}\n`);
  if (!existsSync(path)) write([newMasterKey()]);
  const text = () => readFileSync(path, "utf8");
  return {
    read() {
      const keys = parseMasterKeys(text());
      if (!keys) throw new Error(`${path} does not hold master keys of 32 bytes in base64`);
      return keys;
    },
    add: () => write([newMasterKey(), ...text().split(/\s+/).filter(Boolean)]),
  };
}

/** At no moment is there half a file, or none: without its master keys an installation's keys are lost. */
function replaceFile(path: string, text: string): void {
  const draft = `${path}.new`;
  const file = openSync(draft, "w", 0o600);
  const owner = statSync(path, { throwIfNoEntry: false });
  // Rotated by root, it stays the server's own.
  if (owner) fchownSync(file, owner.uid, owner.gid);
  writeSync(file, text);
  fsyncSync(file);
  closeSync(file);
  renameSync(draft, path);
}
