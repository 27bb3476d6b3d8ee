import { createHmac, randomBytes } from "node:crypto";
import { hashToken } from "../rules/tokens.ts";
import { isSameSecret } from "./tokens.ts";

/** Time-based one-time passwords (RFC 6238) with the parameters that all authenticator apps support. */
const STEP_MS = 30_000;
const DIGITS = 6;
/** Steps before and after the current one whose codes are accepted: clocks differ, and people type slowly. */
const TOLERANCE_STEPS = 1;
const SECRET_BYTES = 20;

const ALPHABET = "abcdefghijklmnopqrstuvwxyz234567";

/** Random text in the alphabet of base32 (RFC 4648), in lowercase: five bits per character. */
const randomBase32 = (length: number): string =>
  // The alphabet has 32 characters, so that the remainder of a random byte is not biased.
  Array.from(randomBytes(length), (byte) => ALPHABET[byte % ALPHABET.length]).join("");

/** A secret of 160 bits in base32, as apps take it. */
export const newSecret = (): string => randomBase32((SECRET_BYTES * 8) / 5).toUpperCase();

/** The address from which apps read a secret; shown as a QR code. */
export function otpauthUri(secret: string, issuer: string, account: string): string {
  const label = `${encodeURIComponent(issuer)}:${encodeURIComponent(account)}`;
  const parameters = `algorithm=SHA1&digits=${DIGITS}&period=${STEP_MS / 1000}`;
  return `otpauth://totp/${label}?secret=${secret}&issuer=${encodeURIComponent(issuer)}&${parameters}`;
}

export const timeStep = (at: number): number => Math.floor(at / STEP_MS);

export function codeOf(secret: string, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const mac = createHmac("sha1", bytesOf(secret)).update(counter).digest();
  const offset = (mac.at(-1) ?? 0) & 0xf;
  const number = mac.readUInt32BE(offset) & 0x7fff_ffff;
  return `${number % 10 ** DIGITS}`.padStart(DIGITS, "0");
}

/** The time step, among those accepted at a time, that a code belongs to; null for a wrong code. */
export function stepOf(secret: string, code: string, at: number): number | null {
  const now = timeStep(at);
  for (let step = now - TOLERANCE_STEPS; step <= now + TOLERANCE_STEPS; step++) {
    if (isSameSecret(code, codeOf(secret, step))) return step;
  }
  return null;
}

function bytesOf(base32: string): Buffer {
  const bits = Array.from(base32.toLowerCase(), (character) =>
    ALPHABET.indexOf(character).toString(2).padStart(5, "0"),
  ).join("");
  return Buffer.from(bits.match(/.{8}/g)?.map((byte) => Number.parseInt(byte, 2)) ?? []);
}

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
