import { randomBytes } from "node:crypto";

export const SESSION_MS = 30 * 24 * 60 * 60 * 1000;

/** Opaque: 256 random bits. The server keeps only its hash. */
export const newToken = () => `ply_${randomBytes(32).toString("base64url")}`;

export const hashToken = (token: string) =>
  new Bun.CryptoHasher("sha256").update(token).digest("hex");
