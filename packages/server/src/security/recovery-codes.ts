import { hashToken } from "../rules/tokens.ts";
import { randomBase32 } from "./totp.ts";

const CODES = 10;
/** 80 bits: the hash of a code cannot be reversed by trying. */
const CODE_LENGTH = 16;

/** Recovery codes as they are shown, with a hyphen after every four characters. */
export const newRecoveryCodes = (): string[] =>
  Array.from({ length: CODES }, () => randomBase32(CODE_LENGTH).replace(/.{4}(?=.)/g, "$&-"));

/** The hash by which a code is stored. Case, spaces and hyphens do not matter, nor 0 for O and 1 for L. */
export function recoveryCodeHash(accountId: number, code: string): string {
  const plain = code
    .toLowerCase()
    .replace(/[^a-z0-9]/g, "")
    .replaceAll("0", "o")
    .replaceAll("1", "l");
  return hashToken(`${accountId} ${plain}`);
}
